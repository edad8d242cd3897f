// heddle devices under mpirun: all ranks' machines as one cluster, with measured links.
#include <cstdio>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/report/text_table.h"
#include "heddle/runtime/rank_network.h"
#include "heddle/session/rank_cluster.h"
#include "rank_verbs.h"

namespace heddle::cli {
namespace {

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

Result<int> run_devices_on_ranks(const std::string& output, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  HEDDLE_ASSIGN_OR_RETURN(const auto measured, measure_rank_cluster(group));
  if (group.rank() != 0) return kExitDone;
  const auto& cluster = measured.cluster;
  const auto yaml = cluster_to_yaml(*cluster);
  if (invocation.progress) invocation.progress->finish();
  if (!output.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(output, yaml));
  if (invocation.json) {
    std::printf("%s\n", cluster_to_json(*cluster).dump(1).c_str());
  } else if (output.empty()) {
    std::printf("%s", yaml.c_str());
  } else {
    std::printf("%swritten to %s\n", links_text(measured.links, measured.labels).c_str(), output.c_str());
  }
  return kExitDone;
}

}  // namespace heddle::cli
