#include "anneal.h"

#include <algorithm>
#include <ctime>

namespace heddle {
namespace {

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

AnnealClock::AnnealClock(const AnnealSchedule& schedule, const Deadline& deadline)
    : schedule_(schedule),
      deadline_(deadline),
      seconds_(schedule.follows_deadline ? deadline.seconds_left() : std::numeric_limits<double>::infinity()),
      cpu_begin_(schedule.cpu_seconds > 0 ? thread_seconds() : 0) {}

double AnnealClock::share(uint64_t moves) const {
  double share = static_cast<double>(moves) / static_cast<double>(schedule_.moves);
  if (seconds_ < std::numeric_limits<double>::infinity())
    share = std::max(share, 1 - deadline_.seconds_left() / seconds_);
  if (schedule_.cpu_seconds > 0)
    share = std::max(share, (thread_seconds() - cpu_begin_) / schedule_.cpu_seconds);
  return share;
}

}  // namespace heddle
