#include "heddle/cluster/discover.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core_kinds.h"
#include "heddle/base/file.h"
#include "heddle/base/numbers.h"
#include "heddle/base/own_cores.h"
#include "machine_rates.h"
#include "names.h"
#include "rounded.h"

namespace heddle {
namespace {

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

// The CPUs of a quota, from the text of "cpu.max" ("200000 100000", "max 100000"); 0: no limit.
double cpus_of_cpu_max(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const int64_t quota = parse_number<int64_t>(text.substr(0, space)).value_or(-1);  // "max" is not a number
  const int64_t period = parse_number<int64_t>(text.substr(space + 1)).value_or(0);
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
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

// The logical CPUs that this process may use. CPUs of one package and one physical core are adjacent. The
// list is cut to the cgroup's CPU quota (rounded down, at least one). Never empty.
std::vector<int> usable_cores() {
  std::vector<int> cores = own_cores();
  const auto place = [](int core) {
    const CorePlace at = core_place(core);
    return std::tuple(at.package, at.core, core);
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

// The minimum of physical memory and the cgroup's limits.
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

// Limit on core sets: more help no plan but slow every planner. The smallest sets are left out first.
constexpr size_t kMaxCoreSets = 255;

// Measured: one call of a compiled one-op OpenVINO model takes 6 to 7 us.
constexpr double kOpenVinoCallUs = 6;

// All cores, then the halves of each set in turn: larger sets first.
std::vector<std::vector<int>> core_sets(std::vector<int> cores) {
  std::vector<std::vector<int>> sets{std::move(cores)};
  for (size_t i = 0; i < sets.size() && sets.size() + 2 <= kMaxCoreSets; ++i) {
    const std::vector<int> set = sets[i];
    if (set.size() < 2) continue;
    const auto middle = set.begin() + static_cast<std::ptrdiff_t>((set.size() + 1) / 2);
    sets.emplace_back(set.begin(), middle);
    sets.emplace_back(middle, set.end());
  }
  return sets;
}

// Interpolates linearly between the rate of one core and that of all.
double rate_of(size_t cores, size_t all, double one_rate, double all_rate) {
  if (all < 2) return rounded(one_rate);
  const double f = static_cast<double>(cores - 1) / static_cast<double>(all - 1);
  return rounded(one_rate + f * (std::max(all_rate, one_rate) - one_rate));
}

struct Machine {
  std::vector<int> cores;
  int64_t memory_bytes;
  MachineRates rates;
};

const Machine& this_machine() {
  static const Machine machine = [] {
    Machine m{usable_cores(), usable_memory_bytes(), {}};
    m.rates = measure_machine(m.cores);
    return m;
  }();
  return machine;
}

// `kind`: of core_kinds().
void add_cpu(ClusterBuilder& b, HostId host, const Machine& m, const std::vector<int>& cores,
             const std::string& kind) {
  const double bandwidth =
      rate_of(cores.size(), m.cores.size(), m.rates.read_bytes_per_s_one, m.rates.read_bytes_per_s_all);
  Device d;
  std::vector<int> ascending = cores;
  std::sort(ascending.begin(), ascending.end());
  d.name = "cpu" + core_ranges(ascending, '+');
  d.kind = DeviceKind::kCpu;
  d.device_class = fmt::format("cpu{}{}{}", cores.size(), kind.empty() ? "" : "-", kind);
  d.host = host;
  d.peak_flops = rate_of(cores.size(), m.cores.size(), m.rates.flops_one, m.rates.flops_all);
  d.memory_bytes_per_s = bandwidth;
  d.op_overhead_us = kOpenVinoCallUs;
  d.cores = cores;
  d.copy_engines = 0;
  d.backend = "openvino";
  d.backend_device = "CPU";
  d.target = fmt::format("openvino:CPU:{}{}{}", cores.size(), kind.empty() ? "" : ":", kind);
  const DeviceId id = b.add_device(std::move(d));
  // Tensors are passed by reference. The costs are waking the consumer, and its reading from memory what is
  // in the producer's cache. The route between two devices has two such links.
  b.add_link({.a = b.host_node(host),
              .b = b.device_node(id),
              .bytes_per_s = bandwidth,
              .latency_us = rounded(m.rates.handover_us / 2)});
}

// Nothing is known about it except that tensors pass through host memory; the copy reads and writes there.
void add_other(ClusterBuilder& b, HostId host, const Machine& m, const std::string& name) {
  constexpr double kOffloadUs = 10;
  Device d;
  d.name = name;
  std::transform(d.name.begin(), d.name.end(), d.name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  d.kind = name.starts_with("NPU") ? DeviceKind::kNpu : DeviceKind::kGpu;
  d.device_class = "openvino-" + name;
  d.host = host;
  d.op_overhead_us = kOffloadUs;
  d.backend = "openvino";
  d.backend_device = name;
  d.target = "openvino:" + name;
  const DeviceId id = b.add_device(std::move(d));
  b.add_link({.a = b.host_node(host),
              .b = b.device_node(id),
              .bytes_per_s = rounded(m.rates.read_bytes_per_s_one / 2),
              .latency_us = kOffloadUs});
}

}  // namespace

Result<std::shared_ptr<const Cluster>> discover_local(std::span<const std::string> openvino_devices,
                                                      const GpuTopology& gpus) {
  const Machine& m = this_machine();
  ClusterBuilder b("local");
  const HostId host = b.add_host({.name = "host", .memory_bytes = m.memory_bytes});
  const auto sets = core_sets(m.cores);
  const auto kinds = core_kinds(sets, core_place);
  for (size_t i = 0; i < sets.size(); ++i) add_cpu(b, host, m, sets[i], kinds[i]);
  for (const std::string& name : openvino_devices) add_other(b, host, m, name);
  add_gpus(b, host, gpus, rounded(m.rates.read_bytes_per_s_one / 2));
  return b.build();
}

std::string machine_fingerprint() {
  utsname system{};
  uname(&system);
  // Rounded to whole GiB, because the kernel's own share differs from boot to boot.
  const double gib = static_cast<double>(usable_memory_bytes()) / (1 << 30);
  return fmt::format("{} | {} cores | {:.0f} GiB | {} {} {}", cpu_model_name(), usable_cores().size(),
                     std::round(gib), system.sysname, system.release, system.machine);
}

}  // namespace heddle
