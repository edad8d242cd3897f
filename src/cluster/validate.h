// The checks and defaults of ClusterBuilder::build().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// A route is kept for every pair of nodes, so the number of nodes is limited; larger fleets are pools
// (fleet/), not clusters.
inline constexpr size_t kMaxNodes = 1024;
inline constexpr size_t kMaxLinks = 20'000;
inline constexpr int kMaxCore = 65'535;
inline constexpr size_t kMaxVariants = 16;  // engines or precisions in one list
inline constexpr size_t kMaxNameBytes = 200;

Status validate_cluster(const std::string& name, std::span<const Host> hosts, std::span<const Device> devices,
                        std::span<const Node> nodes, std::span<const Link> links, std::span<const Bus> buses);

// The part of validate_cluster() that concerns one device.
Status check_device(const Device& device, size_t num_hosts);

// Sorts cores. Defaults: a device's name as its class, OpenVINO's "CPU" for CPUs, "a-b" for nameless links.
void fill_defaults(std::vector<Device>& devices, std::span<const Node> nodes, std::vector<Link>& links);

}  // namespace heddle
