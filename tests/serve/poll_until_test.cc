// Waiting for events, also where the kernel cannot wait by the microsecond.
#include "http/poll_until.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "heddle/serve/live_plane.h"
#include "http/socket_stream.h"

namespace heddle {
namespace {

int old_kernel(int, epoll_event*, int, const timespec*, const sigset_t*) {
  errno = ENOSYS;
  return -1;
}

class PollUntil : public testing::TestWithParam<EpollWait> {
 protected:
  PollUntil() : epoll_(::epoll_create1(0)), event_(::eventfd(0, 0)) {
    epoll_event e = {};
    e.events = EPOLLIN;
    e.data.u64 = 7;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &e);
  }
  FileHandle epoll_, event_;
  epoll_event out_[4] = {};
};

TEST_P(PollUntil, WaitsForTheTimeOrTheEvent) {
  const TimeNs until = live_now() + 2'500'000;
  EXPECT_EQ(poll_until(epoll_.get(), out_, 4, until, GetParam()), 0);
  EXPECT_GE(live_now(), until);
  EXPECT_EQ(poll_until(epoll_.get(), out_, 4, live_now() - kNsPerSecond, GetParam()), 0);
  ASSERT_EQ(::eventfd_write(event_.get(), 1), 0);
  // Far away: the event ends the wait.
  EXPECT_EQ(poll_until(epoll_.get(), out_, 4, live_now() + 3600 * kNsPerSecond, GetParam()), 1);
  // A copy: the kernel's struct is packed.
  EXPECT_EQ(uint64_t{out_[0].data.u64}, 7U);
}

TEST_P(PollUntil, OtherErrorsStayErrors) {
  EXPECT_EQ(poll_until(-1, out_, 4, live_now(), GetParam()), -1);
  EXPECT_EQ(errno, EBADF);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PollUntil, testing::Values(&::epoll_pwait2, &old_kernel));

}  // namespace
}  // namespace heddle
