// heddle devices under mpirun: all ranks' machines as one cluster, with measured links.
#include <algorithm>
#include <cstdio>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/report/text_table.h"
#include "heddle/runtime/rank_network.h"
#include "heddle/session/loaded_model.h"
#include "rank_verbs.h"

namespace heddle::cli {
namespace {

Json list_in(const Json& cluster, const char* key) {
  return cluster.contains(key) ? cluster[key] : Json::array();
}

// Hosts on which several ranks run get the rank's number.
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

std::string percent_of(double part) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * part);
  return text;
}

std::string ports_text(const RankLinks& links, const std::vector<std::string>& labels) {
  if (links.ports.empty()) return "";
  TextTable table({{"to or from all others at once"},
                   {"sends share", TextTable::Align::kRight},
                   {"receives share", TextTable::Align::kRight}});
  for (size_t r = 0; r < links.ports.size(); ++r)
    table.add_row({labels[r], percent_of(links.ports[r].out), percent_of(links.ports[r].in)});
  return table.to_string() +
         (shares_ports(links) && !describes_ports(links)
              ? "the bandwidths of single links do not fit one link for each rank: written "
                "as if messages at once shared nothing\n"
              : "");
}

std::string links_text(const RankLinks& links, const std::vector<std::string>& labels) {
  std::vector<TextTable::Column> columns = {{"between"}, {"and"}};
  for (const MessageTime& t : links.pairs.front().times)
    columns.push_back({format_bytes(t.bytes), TextTable::Align::kRight});
  columns.push_back({"bandwidth", TextTable::Align::kRight});
  columns.push_back({"both ways", TextTable::Align::kRight});
  TextTable table(columns);
  for (const RankLink& link : links.pairs) {
    std::vector<std::string> row = {labels[static_cast<size_t>(link.a)], labels[static_cast<size_t>(link.b)]};
    for (const MessageTime& t : link.times) row.push_back(format_us(t.us));
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.4g MB/s", link.bytes_per_s / 1e6);
    row.emplace_back(rate);
    std::snprintf(rate, sizeof rate, "x %.2f", link.both_ways);
    row.emplace_back(rate);
    table.add_row(row);
  }
  return "One message, by its size:\n" + table.to_string() + ports_text(links, labels);
}

}  // namespace

Json join_hosts(const std::vector<FoundHost>& found, const RankLinks& links) {
  const auto labels = host_labels(found);
  Json joined = {{"name", "ranks"}};
  for (const char* key : {"hosts", "devices", "switches", "buses", "links"}) joined[key] = Json::array();
  std::vector<std::string> memory;  // per rank: its first host
  for (size_t r = 0; r < found.size(); ++r) {
    const Json& cluster = found[r].cluster;
    const Json hosts = list_in(cluster, "hosts");
    const auto renamed = [&](const Json& name) {
      // The only host is the machine itself.
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
        // Devices of two machines need not cost the same.
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

Result<int> run_devices_on_ranks(const std::string& output, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  // One after the other: ranks on one machine would else measure each other's work.
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
  HEDDLE_ASSIGN_OR_RETURN(const auto links, measure_links(group));
  if (group.rank() != 0) return kExitDone;
  std::vector<FoundHost> found;
  for (size_t r = 0; r < texts.size(); ++r) {
    HEDDLE_ASSIGN_OR_RETURN(Json cluster, parse_json(texts[r]));
    found.push_back({names[r], std::move(cluster)});
  }
  const Json joined = join_hosts(found, links);
  HEDDLE_ASSIGN_OR_RETURN(const auto cluster, cluster_from_json(JsonCursor(joined)));
  const auto yaml = cluster_to_yaml(*cluster);
  if (invocation.progress) invocation.progress->finish();
  if (!output.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(output, yaml));
  if (invocation.json) {
    std::printf("%s\n", cluster_to_json(*cluster).dump(1).c_str());
  } else if (output.empty()) {
    std::printf("%s", yaml.c_str());
  } else {
    std::printf("%swritten to %s\n", links_text(links, host_labels(found)).c_str(), output.c_str());
  }
  return kExitDone;
}

}  // namespace heddle::cli
