// Moirai: the two testbeds of Table III with their measured bandwidths (Gbps, from row to column), which
// differ by direction.
#include <array>

#include "presets.h"

namespace heddle {
namespace {

using Matrix = std::array<std::array<double, 4>, 4>;

constexpr Matrix kInterGbps = {
    {{0, 44.26, 32.92, 44.28}, {42.39, 0, 35.32, 44.51}, {33.2, 35.31, 0, 32.95}, {42.08, 43.22, 33.28, 0}}};
constexpr Matrix kIntraGbps = {{{0, 1170.04, 626.10, 610.56},
                                {1148.16, 0, 618.98, 581.09},
                                {630.43, 609.82, 0, 571.96},
                                {622.67, 575.08, 581.35, 0}}};

// One message over InfiniBand between GPUs of two servers; assumed, like the other latencies.
constexpr double kInfiniBandLatencyUs = 10;

void add_measured_links(ClusterBuilder& b, const std::array<DeviceId, 4>& gpu, const Matrix& gbps,
                        double latency_us) {
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      if (i == j) continue;
      b.add_link({.a = b.device_node(gpu[i]),
                  .b = b.device_node(gpu[j]),
                  .bytes_per_s = gbps[i][j] * 1e9 / 8,
                  .latency_us = latency_us,
                  .duplex = Duplex::kOneWay});
    }
  }
}

ClusterResult build(const std::string& name, const std::array<CatalogueDevice, 4>& models, int num_hosts,
                    const Matrix& gbps, double latency_us) {
  ClusterBuilder b(name);
  std::vector<HostId> hosts;
  for (int i = 0; i < num_hosts; ++i) hosts.push_back(b.add_host({.name = "server" + std::to_string(i + 1)}));
  std::array<DeviceId, 4> gpu;
  for (size_t i = 0; i < 4; ++i) {
    const HostId host = hosts[i % hosts.size()];
    gpu[i] = b.add_device(make_device(models[i], std::string("gpu-") + static_cast<char>('a' + i), host));
    add_pcie(b, gpu[i], host, kPcie3Rate);
  }
  add_measured_links(b, gpu, gbps, latency_us);
  return b.build();
}

ClusterResult inter() {
  return build("moirai-inter", {kRtx2080Ti, kT4, kP4, kRtx3060Ti}, 4, kInterGbps, kInfiniBandLatencyUs);
}
ClusterResult intra() {
  return build("moirai-intra", {kV100, kV100, kP100, kP100}, 1, kIntraGbps, kNvLinkLatencyUs);
}

}  // namespace

void add_moirai_presets(std::vector<PresetEntry>& into) {
  into.push_back(
      {{"moirai-inter", "RTX 2080 Ti, T4, P4 and RTX 3060 Ti in four servers on 100 Gbit/s InfiniBand",
        "Moirai, Table III, inter-server"},
       inter});
  into.push_back({{"moirai-intra", "2 V100 32 GB and 2 P100 16 GB on NVLink and NVSwitch",
                   "Moirai, Table III, intra-server"},
                  intra});
}

}  // namespace heddle
