// DiviML: the heterogeneous node of section V and the six nodes of section VI.
#include "presets.h"

namespace heddle {
namespace {

// "Intel Xeon (Skylake) CPU 2.00GHz", number of cores not stated. Assumed: eight cores with two AVX-512 units
// each (64 FLOP per cycle), and six channels of DDR4-2666.
Device xeon(std::string name, HostId host) {
  Device d;
  d.name = std::move(name);
  d.kind = DeviceKind::kCpu;
  d.device_class = "Xeon-Skylake";
  d.host = host;
  d.peak_flops = 8 * 64 * 2.0e9;
  d.memory_bytes_per_s = 6 * 2666e6 * 8;
  d.op_overhead_us = kLaunchUs;
  d.copy_engines = 0;
  return d;
}

// "connected by a 16 lanes PCIe 4.0 link". The CPU computes in host memory, where the links start.
ClusterResult single() {
  ClusterBuilder b("diviml");
  const HostId host = b.add_host({.name = "server"});
  b.add_device(xeon("cpu", host));
  const DeviceId t4 = b.add_device(make_device(kT4, "t4", host));
  const DeviceId a100 = b.add_device(make_device(kA100, "a100", host));
  add_pcie(b, t4, host, kPcie4Rate);
  add_pcie(b, a100, host, kPcie4Rate);
  return b.build();
}

// Figure 8's six nodes. The text states only their symmetry: 6! orders of nodes and 4 within each, which
// implies two pairs of equal devices. Assumed here: two T4 and two A100 beside the CPU, and 100 Gbit/s
// between the nodes.
ClusterResult gpt3() {
  constexpr double kNetworkRate = 100e9 / 8, kNetworkLatencyUs = 15;
  ClusterBuilder b("diviml-gpt3");
  const NodeId network = b.add_switch("network");
  for (int n = 1; n <= 6; ++n) {
    const std::string suffix = "-" + std::to_string(n);
    const HostId host = b.add_host({.name = "node" + suffix});
    b.add_device(xeon("cpu" + suffix, host));
    for (const auto& [model, name] : {std::pair{kT4, "t4"}, std::pair{kA100, "a100"}}) {
      for (const char* which : {"a", "b"}) {
        add_pcie(b, b.add_device(make_device(model, name + std::string(which) + suffix, host)), host,
                 kPcie4Rate);
      }
    }
    b.add_link({.name = "nic" + suffix,
                .a = b.host_node(host),
                .b = network,
                .bytes_per_s = kNetworkRate,
                .latency_us = kNetworkLatencyUs / 2});
  }
  return b.build();
}

}  // namespace

void add_diviml_presets(std::vector<PresetEntry>& into) {
  into.push_back({{"diviml", "a Xeon CPU, a T4 and an A100 on PCIe 4", "DiviML, section V"}, single});
  into.push_back({{"diviml-gpt3", "six nodes of a CPU, two T4 and two A100 (the figure's details assumed)",
                   "DiviML, section VI, Fig. 8"},
                  gpt3});
}

}  // namespace heddle
