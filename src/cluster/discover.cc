#include "heddle/cluster/discover.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "machine_limits.h"
#include "machine_rates.h"
#include "names.h"
#include "rounded.h"

namespace heddle {
namespace {

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

void add_cpu(ClusterBuilder& b, HostId host, const Machine& m, const std::vector<int>& cores) {
  const double bandwidth =
      rate_of(cores.size(), m.cores.size(), m.rates.read_bytes_per_s_one, m.rates.read_bytes_per_s_all);
  Device d;
  std::vector<int> ascending = cores;
  std::sort(ascending.begin(), ascending.end());
  d.name = "cpu" + core_ranges(ascending, '+');
  d.kind = DeviceKind::kCpu;
  d.device_class = fmt::format("cpu{}", cores.size());
  d.host = host;
  d.peak_flops = rate_of(cores.size(), m.cores.size(), m.rates.flops_one, m.rates.flops_all);
  d.memory_bytes_per_s = bandwidth;
  d.op_overhead_us = kOpenVinoCallUs;
  d.cores = cores;
  d.copy_engines = 0;
  d.backend = "openvino";
  d.backend_device = "CPU";
  d.target = fmt::format("openvino:CPU:{}", cores.size());
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
  for (const auto& cores : core_sets(m.cores)) add_cpu(b, host, m, cores);
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
