// Waiting for events until a time, to the microsecond where the kernel can.
#pragma once

#include <sys/epoll.h>

#include "heddle/fleet/data_plane_time.h"

namespace heddle {

using EpollWait = int (*)(int epoll, epoll_event* events, int room, const timespec* left,
                          const sigset_t* mask);

// As epoll_wait(2), until live_now() is `until`; in the past: looks and returns. Kernels before 5.11 have no
// epoll_pwait2(2): there it waits whole milliseconds, rounded up. `fine` is for tests.
int poll_until(int epoll, epoll_event* events, int room, TimeNs until, EpollWait fine = ::epoll_pwait2);

}  // namespace heddle
