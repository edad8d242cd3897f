#include "heddle/report/hardware_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/units.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/planners/planner.h"
#include "heddle/report/text_table.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/rank_network.h"

namespace heddle {
namespace {

std::string rate_text(double per_s, const char* unit) { return per_s > 0 ? format_si(per_s, unit) : "-"; }

std::string percent_of(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string ports_text(const RankLinks& links, const std::vector<std::string>& labels) {
  if (links.ports.empty()) return "";
  TextTable table({{"to or from all others at once"}, {"sends share", kRight}, {"receives share", kRight}});
  for (size_t r = 0; r < links.ports.size(); ++r)
    table.add_row({labels[r], percent_of(links.ports[r].out), percent_of(links.ports[r].in)});
  return table.to_string() +
         (shares_ports(links) && !describes_ports(links)
              ? "the bandwidths of single links do not fit one link for each rank: written "
                "as if messages at once shared nothing\n"
              : "");
}

}  // namespace

Shown backends_shown() {
  Json rows = Json::array();
  TextTable table({{"backend"}, {"what"}});
  for (const auto& backend : backend_registry()) {
    rows.push_back({{"name", backend->name()}, {"description", backend->description()}});
    table.add_row({backend->name(), backend->description()});
  }
  return {rows, table.to_string()};
}

Shown presets_shown() {
  Json rows = Json::array();
  TextTable table({{"preset"}, {"what"}, {"source"}});
  for (const auto& p : cluster_presets()) {
    rows.push_back({{"name", p.name}, {"description", p.description}, {"source", p.source}});
    table.add_row({p.name, p.description, p.source});
  }
  return {rows, table.to_string()};
}

Shown catalogue_shown() {
  Json rows = Json::array();
  TextTable table({{"class"},
                   {"memory", kRight},
                   {"bandwidth", kRight},
                   {"host link", kRight},
                   {"f32", kRight},
                   {"tf32", kRight},
                   {"bf16", kRight},
                   {"fp16", kRight},
                   {"int8", kRight},
                   {"source"}});
  for (const CatalogueDevice& d : device_catalogue()) {
    rows.push_back({{"class", d.name},
                    {"kind", device_kind_name(d.kind)},
                    {"memory_bytes", d.memory_bytes},
                    {"memory_bytes_per_s", d.memory_bytes_per_s},
                    {"link_bytes_per_s", d.link_bytes_per_s},
                    {"f32_flops", d.f32_flops},
                    {"tf32_flops", d.tf32_flops},
                    {"bf16_flops", d.bf16_flops},
                    {"fp16_flops", d.fp16_flops},
                    {"int8_ops", d.int8_ops},
                    {"source", d.source}});
    table.add_row({d.name, d.memory_bytes > 0 ? format_bytes(d.memory_bytes) : "host's",
                   rate_text(d.memory_bytes_per_s, "B/s"), rate_text(d.link_bytes_per_s, "B/s"),
                   rate_text(d.f32_flops, "FLOP/s"), rate_text(d.tf32_flops, "FLOP/s"),
                   rate_text(d.bf16_flops, "FLOP/s"), rate_text(d.fp16_flops, "FLOP/s"),
                   rate_text(d.int8_ops, "OP/s"), d.source});
  }
  return {rows, table.to_string()};
}

std::string engines_text(const Cluster& cluster, const std::vector<DeviceEngine>& engines) {
  TextTable table({{"device"}, {"engine"}, {"precisions"}, {"by itself"}});
  for (const auto& e : engines) {
    std::vector<std::string> names;
    for (const Precision precision : e.precisions) names.emplace_back(precision_name(precision));
    table.add_row(
        {cluster.device(e.device).name, e.engine, fmt::format("{}", fmt::join(names, ", ")), names.front()});
  }
  return table.to_string();
}

Json engines_json(const Cluster& cluster, const std::vector<DeviceEngine>& engines) {
  Json list = Json::array();
  for (const auto& e : engines) {
    Json names = Json::array();
    for (const Precision precision : e.precisions) names.push_back(precision_name(precision));
    list.push_back({{"device", cluster.device(e.device).name}, {"engine", e.engine}, {"precisions", names}});
  }
  return list;
}

std::string rank_links_text(const RankLinks& links, const std::vector<std::string>& labels) {
  std::vector<TextTable::Column> columns = {{"between"}, {"and"}};
  for (const MessageTime& t : links.pairs.front().times) columns.push_back({format_bytes(t.bytes), kRight});
  columns.push_back({"bandwidth", kRight});
  columns.push_back({"both ways", kRight});
  TextTable table(columns);
  for (const RankLink& link : links.pairs) {
    std::vector<std::string> row = {labels[static_cast<size_t>(link.a)], labels[static_cast<size_t>(link.b)]};
    for (const MessageTime& t : link.times) row.push_back(format_us(t.us));
    row.push_back(fmt::format("{:.4g} MB/s", link.bytes_per_s / 1e6));
    row.push_back(fmt::format("x {:.2f}", link.both_ways));
    table.add_row(row);
  }
  return "One message, by its size:\n" + table.to_string() + ports_text(links, labels);
}

Shown planners_shown() {
  Json rows = Json::array();
  TextTable table({{"planner"}, {"objectives"}, {"what"}, {"source"}});
  for (const auto& entry : planner_registry()) {
    std::string objectives;
    Json list = Json::array();
    for (const auto objective : entry.info.objectives) {
      objectives += (objectives.empty() ? "" : ", ") + std::string(objective_name(objective));
      list.push_back(objective_name(objective));
    }
    rows.push_back({{"name", entry.info.name},
                    {"description", entry.info.description},
                    {"source", entry.info.source},
                    {"objectives", list},
                    {"exploits", entry.info.exploits},
                    {"ignores", entry.info.ignores},
                    {"ready", entry.info.ready}});
    if (!entry.alias_of.empty()) {
      rows.back()["alias_of"] = entry.alias_of;
      rows.back()["settings"] = entry.chosen;
    }
    table.add_row({entry.info.name, objectives, entry.info.description, entry.info.source});
  }
  return {rows, table.to_string()};
}

}  // namespace heddle
