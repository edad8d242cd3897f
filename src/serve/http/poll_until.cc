#include "poll_until.h"

#include <algorithm>
#include <cerrno>

#include "heddle/serve/live_plane.h"

namespace heddle {

int poll_until(int epoll, epoll_event* events, int room, TimeNs until, EpollWait fine) {
  const TimeNs left = std::max<TimeNs>(0, until - live_now());
  const timespec timeout = {left / kNsPerSecond, left % kNsPerSecond};
  const int n = fine(epoll, events, room, &timeout, nullptr);
  if (n >= 0 || errno != ENOSYS) return n;
  constexpr TimeNs kNsPerMs = 1'000'000, kMostMs = 1'000'000;
  return ::epoll_wait(epoll, events, room,
                      static_cast<int>(std::min(kMostMs, (left + kNsPerMs - 1) / kNsPerMs)));
}

}  // namespace heddle
