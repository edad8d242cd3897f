// PPipe (ATC 2025): the eight clusters of Table 1. Bandwidths are the effective ones for which its plans were
// solved: a fifth of the nominal 50 Gbit/s (T4 clusters) and 32 Gbit/s (P4 clusters, rounded down to 6), see
// section 7.1. The published artifact swaps the two compared with Table 1.
#include "presets.h"

namespace heddle {
namespace {

struct Half {
  CatalogueDevice model;
  int gpus_per_server;
};

struct Setup {
  const char* name;
  Half high, low;
  double effective_gbps;
};

constexpr Setup kSetups[] = {
    {"hc1", {kL4, 1}, {kP4, 1}, 6},
    {"hc2", {kL4, 4}, {kT4, 2}, 10},
    {"hc3", {kV100Cloud, 2}, {kP4, 1}, 6},
    {"hc4", {kV100Cloud, 4}, {kT4, 2}, 10},
};

// L: 25 + 75 GPUs; S: 4 + 12 (high class + low class).
constexpr int kLargeHigh = 25, kLargeLow = 75, kSmallHigh = 4, kSmallLow = 12;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Servers of one GPU type. Latencies are zero, as in the paper's plans: a transfer takes bytes / NIC
// bandwidth.
void add_servers(ClusterBuilder& b, NodeId network, const Half& half, int count, double bytes_per_s) {
  const std::string type = lower(half.model.name);
  HostId host;
  for (int i = 0; i < count; ++i) {
    if (i % half.gpus_per_server == 0) {
      const std::string server = type + "-server" + std::to_string(i / half.gpus_per_server + 1);
      host = b.add_host({.name = server});
      b.add_link({.name = server + "-nic", .a = b.host_node(host), .b = network, .bytes_per_s = bytes_per_s});
    }
    const DeviceId gpu = b.add_device(make_device(half.model, type + "-" + std::to_string(i + 1), host));
    b.add_link({.a = b.host_node(host), .b = b.device_node(gpu), .bytes_per_s = kPcie3Rate});
  }
}

ClusterResult build(const Setup& setup, const std::string& name, int high, int low) {
  ClusterBuilder b(name);
  const NodeId network = b.add_switch("network");
  const double bytes_per_s = setup.effective_gbps * 1e9 / 8;
  add_servers(b, network, setup.high, high, bytes_per_s);
  add_servers(b, network, setup.low, low, bytes_per_s);
  return b.build();
}

void add(std::vector<PresetEntry>& into, const Setup& setup, const char* size, int high, int low) {
  const std::string name = std::string(setup.name) + "-" + size;
  const std::string description = std::to_string(high) + " " + setup.high.model.name + " and " +
                                  std::to_string(low) + " " + setup.low.model.name + " GPUs, " +
                                  std::to_string(static_cast<int>(setup.effective_gbps)) +
                                  " Gbit/s effective per server";
  into.push_back({{name, description, "PPipe, Table 1, section 7.1"},
                  [&setup, name, high, low] { return build(setup, name, high, low); }});
}

}  // namespace

void add_ppipe_presets(std::vector<PresetEntry>& into) {
  for (const Setup& setup : kSetups) {
    add(into, setup, "l", kLargeHigh, kLargeLow);
    add(into, setup, "s", kSmallHigh, kSmallLow);
  }
}

}  // namespace heddle
