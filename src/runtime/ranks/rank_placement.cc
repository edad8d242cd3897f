// Which rank runs which device.
#include <algorithm>

#include "heddle/base/spelling.h"
#include "heddle/runtime/rank_run.h"

namespace heddle {
namespace {

Result<std::vector<int>> place_as_chosen(const Cluster& cluster, size_t ranks, const std::string& choice) {
  const auto groups = split_at(choice, ';');
  const auto bad = [&](const std::string& why) {
    return invalid_input("--rank-devices " + choice + ": " + why);
  };
  if (groups.size() != ranks) {
    return bad("names the devices of " + std::to_string(groups.size()) + " ranks, but there are " +
               std::to_string(ranks) + "; expected A,B;C (rank 0 has A and B, rank 1 has C)");
  }
  std::vector<int> rank(cluster.num_devices(), -1);
  for (size_t r = 0; r < groups.size(); ++r) {
    if (groups[r].empty()) continue;
    for (const std::string& name : split_at(groups[r], ',')) {
      const DeviceId device = cluster.find_device(name);
      if (!device.valid()) {
        std::vector<std::string> names;
        for (const Device& d : cluster.devices()) names.push_back(d.name);
        return bad("the cluster has no device '" + name + "'" + did_you_mean(name, names));
      }
      if (rank[device.index()] >= 0) return bad("device '" + name + "' was given twice");
      rank[device.index()] = static_cast<int>(r);
    }
  }
  for (size_t d = 0; d < rank.size(); ++d) {
    if (rank[d] < 0) return bad("device '" + cluster.devices()[d].name + "' has no rank");
  }
  return rank;
}

// [host] the only rank on the machine of that name; empty unless every host has one.
std::vector<int> ranks_by_name(const Cluster& cluster, const std::vector<HostId>& hosts,
                               const std::vector<std::string>& names) {
  std::vector<int> ranks;
  for (const HostId host : hosts) {
    const auto& name = cluster.host(host).name;
    if (std::count(names.begin(), names.end(), name) != 1) return {};
    ranks.push_back(static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin()));
  }
  return ranks;
}

}  // namespace

Result<std::vector<int>> place_on_ranks(const Cluster& cluster, const std::vector<std::string>& host_names,
                                        const std::string& choice) {
  const size_t ranks = host_names.size();
  if (!choice.empty()) return place_as_chosen(cluster, ranks, choice);
  std::vector<HostId> hosts;
  for (const Device& d : cluster.devices()) {
    if (std::find(hosts.begin(), hosts.end(), d.host) == hosts.end()) hosts.push_back(d.host);
  }
  std::sort(hosts.begin(), hosts.end());
  const bool by_host = hosts.size() > 1;
  const size_t units = by_host ? hosts.size() : cluster.num_devices();
  if (ranks > units) {
    return invalid_input("there are " + std::to_string(ranks) + " ranks, but the plan's cluster '" +
                         cluster.name() + "' has " + std::to_string(units) +
                         (by_host ? " hosts" : " devices in one host") + "; start mpirun with -n " +
                         std::to_string(units) + ", or place devices by --rank-devices A,B;C");
  }
  const std::vector<int> named = by_host ? ranks_by_name(cluster, hosts, host_names) : std::vector<int>();
  std::vector<int> rank;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    size_t unit = d;
    if (by_host)
      unit = static_cast<size_t>(std::find(hosts.begin(), hosts.end(), cluster.devices()[d].host) -
                                 hosts.begin());
    rank.push_back(named.empty() ? static_cast<int>(unit * ranks / units) : named[unit]);
  }
  return rank;
}

}  // namespace heddle
