#include "heddle/runtime/core_use.h"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "cpu_time.h"
#include "heddle/base/numbers.h"

namespace heddle {
std::optional<CoreUse> core_use() {
  cpu_set_t allowed;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !(ticks > 0)) return std::nullopt;
  CoreUse use{.all_s = 0, .own_s = process_cpu_s()};
  std::ifstream file("/proc/stat");
  int cores = 0;
  for (std::string line; std::getline(file, line);) {
    // "cpu3", then ticks: user, nice, system, idle, waiting for a disk, interrupts, soft interrupts, stolen.
    std::istringstream fields(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    if (!(fields >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen))
      continue;
    if (!name.starts_with("cpu")) continue;
    const auto core = parse_number<int>(name.substr(3));  // none: the sum of all
    if (!core || *core < 0 || *core >= CPU_SETSIZE || !CPU_ISSET(*core, &allowed)) continue;
    use.all_s += (user + nice + system + interrupts + soft + stolen) / ticks;
    ++cores;
  }
  return cores > 0 ? std::optional(use) : std::nullopt;
}

}  // namespace heddle
