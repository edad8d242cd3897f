#include "machine_limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <tuple>

#include "heddle/base/numbers.h"
#include "heddle/base/own_cores.h"

namespace heddle {
namespace {

// Returns "" if the file does not exist.
std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// This process's cgroup under a controller ("": version 2) and all of its parents: "/a/b", "/a", "".
std::vector<std::string> cgroup_paths(std::string_view controller) {
  std::ifstream in("/proc/self/cgroup");
  std::vector<std::string> paths;
  for (std::string line; std::getline(in, line);) {  // "4:memory:/some/path", "0::/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    bool match = controller.empty() && second == first + 1;
    for (std::string name; std::getline(names, name, ',');)
      match = match || (!controller.empty() && name == controller);
    if (!match) continue;
    std::string path = line.substr(second + 1);
    while (!path.empty() && path != "/") {
      paths.push_back(path);
      path.resize(path.rfind('/'));
    }
    paths.emplace_back();
  }
  return paths;
}

// The smallest quota along the path in either cgroup version; 0: none.
double quota_cpus() {
  double least = 0;
  const auto take = [&least](double cpus) {
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  };
  for (const std::string& path : cgroup_paths("")) {
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
      take(cpus_of_cpu_max(first_line(root + path + "/cpu.max")));
  }
  for (const std::string& path : cgroup_paths("cpu")) {
    for (const char* root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
      const int64_t quota = parse_number<int64_t>(first_line(root + path + "/cpu.cfs_quota_us")).value_or(-1);
      const int64_t period =
          parse_number<int64_t>(first_line(root + path + "/cpu.cfs_period_us")).value_or(0);
      if (quota > 0 && period > 0) take(static_cast<double>(quota) / static_cast<double>(period));
    }
  }
  return least;
}

}  // namespace

double cpus_of_cpu_max(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const int64_t quota = parse_number<int64_t>(text.substr(0, space)).value_or(-1);  // "max" is not a number
  const int64_t period = parse_number<int64_t>(text.substr(space + 1)).value_or(0);
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

std::vector<int> usable_cores() {
  std::vector<int> cores = own_cores();
  const auto place = [](int core) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", core);
    return std::tuple(parse_number<int64_t>(first_line(topology + "physical_package_id")).value_or(0),
                      parse_number<int64_t>(first_line(topology + "core_id")).value_or(core), core);
  };
  std::vector<std::tuple<int64_t, int64_t, int>> places;
  for (int core : cores) places.push_back(place(core));
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), cores.begin(), [](const auto& p) { return std::get<2>(p); });
  const double quota = quota_cpus();
  if (quota > 0 && quota < static_cast<double>(cores.size()))
    cores.resize(static_cast<size_t>(std::max(1.0, std::floor(quota))));
  return cores;
}

int64_t usable_memory_bytes() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  // Version 1 represents "no limit" by a number near 2^63, which the minimum ignores.
  for (const std::string& path : cgroup_paths(""))
    bytes = std::min(
        bytes, parse_number<int64_t>(first_line("/sys/fs/cgroup" + path + "/memory.max")).value_or(bytes));
  for (const std::string& path : cgroup_paths("memory")) {
    bytes = std::min(
        bytes, parse_number<int64_t>(first_line("/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes"))
                   .value_or(bytes));
  }
  return std::max<int64_t>(bytes, 0);
}

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string family, model;
  for (std::string line; std::getline(in, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) model = line.substr(colon + 2);
    if (line.starts_with("cpu family") || line.starts_with("model\t") || line.starts_with("stepping"))
      family += '.' + line.substr(colon + 2);
  }
  // Virtual machines often hide the name ("AMD EPYC"); family, model and stepping identify the CPU.
  return (model.empty() ? "unknown CPU" : model) + family;
}

}  // namespace heddle
