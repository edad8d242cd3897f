// How long threads that were ready to run had to wait for a core: the sign of other work on the machine.
#pragma once

namespace heddle {

// Seconds, summed over this process's threads that are alive, since each began. From /proc/self/task/*/schedstat
// (Linux); 0 if the kernel does not keep it. Costs about 10 us a thread.
double waited_for_cores_s();

}  // namespace heddle
