#include "heddle/session/clusters.h"

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/rank_network.h"

namespace heddle {
namespace {

// The machine of one rank.
struct FoundHost {
  std::string host_name;
  Json cluster;  // cluster_to_json of that machine alone
};

Json list_in(const Json& cluster, const char* key) {
  return cluster.contains(key) ? cluster[key] : Json::array();
}

// A host on which several ranks run has one label per rank, with the rank's number.
std::vector<std::string> host_labels(const std::vector<FoundHost>& found) {
  std::vector<std::string> labels;
  for (size_t r = 0; r < found.size(); ++r) {
    const auto same = std::count_if(found.begin(), found.end(), [&](const FoundHost& other) {
      return other.host_name == found[r].host_name;
    });
    labels.push_back(found[r].host_name + (same > 1 ? "-" + std::to_string(r) : ""));
  }
  return labels;
}

// One cluster file for all machines. Each name gets its host's label as a prefix. Measured links lead from
// host to host, or from each host to a switch.
Json join_hosts(const std::vector<FoundHost>& found, const RankLinks& links) {
  const auto labels = host_labels(found);
  Json joined = {{"name", "ranks"}};
  for (const char* key : {"hosts", "devices", "switches", "buses", "links"}) joined[key] = Json::array();
  std::vector<std::string> memory;  // per rank: its first host
  for (size_t r = 0; r < found.size(); ++r) {
    const Json& cluster = found[r].cluster;
    const Json hosts = list_in(cluster, "hosts");
    const auto renamed = [&](const Json& name) {
      // The only host of a cluster is the machine itself.
      const bool sole = hosts.size() == 1 && hosts[0]["name"] == name;
      return sole ? labels[r] : labels[r] + "-" + name.get<std::string>();
    };
    for (const char* key : {"hosts", "devices", "switches", "buses", "links"}) {
      for (Json entry : list_in(cluster, key)) {
        if (!entry.is_object()) {
          joined[key].push_back(renamed(entry));
          continue;
        }
        for (const char* name : {"name", "host", "from", "to", "bus"}) {
          if (entry.contains(name)) entry[name] = renamed(entry[name]);
        }
        // Devices of two machines may have different costs, so their classes differ.
        if (entry.contains("class"))
          entry["class"] = found[r].host_name + "-" + entry["class"].get<std::string>();
        joined[key].push_back(std::move(entry));
      }
    }
    memory.push_back(hosts.empty() ? labels[r] : renamed(hosts[0]["name"]));
  }
  for (Json& link : rank_links_json(links, memory)) joined["links"].push_back(std::move(link));
  if (describes_ports(links)) joined["switches"].push_back(kNetwork);
  return joined;
}

}  // namespace

Result<std::shared_ptr<const Cluster>> open_cluster(const std::string& file_or_preset) {
  if (file_or_preset != "preset:local") return load_cluster(file_or_preset);
  return discover_machine();
}

Result<MeasuredCluster> measure_cluster(const std::shared_ptr<const Cluster>& cluster,
                                        const Control& control) {
  CopyOptions options;
  options.deadline = control.deadline();
  options.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(auto copies, measure_copies(*cluster, options));
  HEDDLE_ASSIGN_OR_RETURN(auto measured, with_measured_links(*cluster, copies.links));
  return MeasuredCluster{std::move(copies), std::move(measured)};
}

Result<RankCluster> measure_rank_cluster(RankGroup& group) {
  // One after the other, because ranks on one machine would otherwise measure each other's work.
  Json own;
  Status status;
  for (int turn = 0; turn < group.size(); ++turn) {
    if (turn == group.rank()) {
      auto cluster = open_cluster("preset:local");
      if (cluster.ok())
        own = cluster_to_json(**cluster);
      else
        status = std::move(cluster).error();
    }
    HEDDLE_RETURN_IF_ERROR(group.agree(status));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto names, group.exchange(group.transport().host_name()));
  HEDDLE_ASSIGN_OR_RETURN(const auto texts, group.exchange(own.dump()));
  RankCluster result;
  HEDDLE_ASSIGN_OR_RETURN(result.links, measure_links(group));
  if (group.rank() != 0) return result;
  std::vector<FoundHost> found;
  for (size_t r = 0; r < texts.size(); ++r) {
    HEDDLE_ASSIGN_OR_RETURN(Json cluster, parse_json(texts[r]));
    found.push_back({names[r], std::move(cluster)});
  }
  result.labels = host_labels(found);
  const Json joined = join_hosts(found, result.links);
  HEDDLE_ASSIGN_OR_RETURN(result.cluster, cluster_from_json(JsonCursor(joined)));
  return result;
}

std::vector<std::pair<std::string, double>> class_factors(const Cluster& cluster) {
  std::vector<std::pair<std::string, double>> factors;
  double fastest = 0;
  for (const auto& d : cluster.devices()) fastest = std::max(fastest, d.peak_flops * d.speed);
  for (const auto& d : cluster.devices()) {
    const bool known =
        std::any_of(factors.begin(), factors.end(), [&](const auto& f) { return f.first == d.device_class; });
    // A time that is given for a class includes the speed of its devices.
    if (!known && d.peak_flops > 0) factors.emplace_back(d.device_class, fastest / (d.peak_flops * d.speed));
  }
  return factors;
}

}  // namespace heddle
