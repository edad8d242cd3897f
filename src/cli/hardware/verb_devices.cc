// heddle devices and heddle planners: the available hardware and methods.
#include <fmt/format.h>

#include <sstream>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/planners/planner.h"
#include "heddle/report/copies_table.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/rank_network.h"
#include "heddle/session/clusters.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct DevicesOptions {
  std::string cluster = "preset:local", output;
  bool presets = false, catalogue = false, backends = false, engines = false, copies = false;
};

Result<int> list_backends(const Invocation& invocation) {
  Json rows = Json::array();
  TextTable table({{"backend"}, {"what"}});
  for (const auto& backend : backend_registry()) {
    rows.push_back({{"name", backend->name()}, {"description", backend->description()}});
    table.add_row({backend->name(), backend->description()});
  }
  show_result(invocation, rows, table.to_string());
  return kExitDone;
}

Result<int> list_presets(const Invocation& invocation) {
  Json rows = Json::array();
  TextTable table({{"preset"}, {"what"}, {"source"}});
  for (const auto& p : cluster_presets()) {
    rows.push_back({{"name", p.name}, {"description", p.description}, {"source", p.source}});
    table.add_row({p.name, p.description, p.source});
  }
  show_result(invocation, rows, table.to_string());
  return kExitDone;
}

std::string rate_text(double per_s, const char* unit) { return per_s > 0 ? format_si(per_s, unit) : "-"; }

Result<int> list_catalogue(const Invocation& invocation) {
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
  show_result(invocation, rows, table.to_string());
  return kExitDone;
}

std::string as_comment(const std::string& text) {
  std::string comment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) comment += line.empty() ? "#\n" : "# " + line + "\n";
  return comment;
}

// Engines and precisions of each device here, with the engine's own choice first.
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

std::string links_text(const RankLinks& links, const std::vector<std::string>& labels) {
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

// This machine of every rank, one after the other, and the links between them.
Result<int> run_devices_on_ranks(const std::string& output, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  HEDDLE_ASSIGN_OR_RETURN(const auto measured, measure_rank_cluster(group));
  if (group.rank() != 0) return kExitDone;
  const auto& cluster = measured.cluster;
  const auto yaml = cluster_to_yaml(*cluster);
  if (!output.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(output, yaml));
  show_result(
      invocation, cluster_to_json(*cluster),
      output.empty() ? yaml : links_text(measured.links, measured.labels) + "written to " + output + "\n");
  return kExitDone;
}

Result<int> run_devices(const DevicesOptions& o, const Invocation& invocation) {
  if (o.presets) return list_presets(invocation);
  if (o.catalogue) return list_catalogue(invocation);
  if (rank_environment().size > 1 && o.cluster == "preset:local") {
    if (o.copies)
      return invalid_input(
          "--copies: measures one machine; run it there without mpirun, on that machine's cluster file");
    HEDDLE_RETURN_IF_ERROR(check_output(o.output));
    return run_devices_on_ranks(o.output, invocation);
  }
  if (o.backends) return list_backends(invocation);
  if (o.copies) HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_ASSIGN_OR_RETURN(auto cluster, open_cluster(o.cluster));
  std::string measured;
  Json measured_json = Json::object();
  if (o.copies) {
    HEDDLE_ASSIGN_OR_RETURN(auto with_copies, measure_cluster(cluster, invocation));
    measured = copies_text(*cluster, with_copies.copies);
    measured_json = copies_json(*cluster, with_copies.copies);
    cluster = std::move(with_copies.cluster);
  }
  if (o.engines) {
    HEDDLE_ASSIGN_OR_RETURN(const auto engines, engines_of(*cluster));
    measured += engines_text(*cluster, engines);
    measured_json["engines_here"] = engines_json(*cluster, engines);
  }
  const auto yaml = cluster_to_yaml(*cluster);
  Json json = cluster_to_json(*cluster);
  json.update(measured_json);
  if (!o.output.empty()) {
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.output, yaml));
    show_result(invocation, json, measured + "written to " + o.output + "\n");
  } else {
    // The file itself, so that `heddle devices > cluster.yaml` is a cluster file; copies' times go before it
    // as comments.
    show_result(invocation, json, as_comment(measured) + yaml);
  }
  return kExitDone;
}

struct PlannersOptions {
  bool markdown = false;
};

Result<int> run_planners(const PlannersOptions& o, const Invocation& invocation) {
  if (o.markdown) {
    print("{}", planners_markdown());
    return kExitDone;
  }
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
  show_result(invocation, rows, table.to_string());
  return kExitDone;
}

}  // namespace

RunFn setup_devices(Command& command) {
  auto o = std::make_shared<DevicesOptions>();
  command.option("--cluster", o->cluster, "show this file or preset instead of this machine");
  command.flag("--presets", o->presets, "list the machines of the papers that are known by name");
  command.flag("--catalogue", o->catalogue, "list the devices that a cluster file can name by class alone");
  command.flag("--backends", o->backends, "list the engines that run segments");
  command.flag("--engines", o->engines, "list each device's engines and the precisions that they have there");
  command.flag("--copies", o->copies,
               "measure copies between the accelerators and the host, and set links and buses to what "
               "was measured");
  command.option("-o,--output", o->output, "write the cluster file here");
  command.footer(
      "Under mpirun: the machines of all ranks as one cluster, with the links between them measured.");
  return [o](const Invocation& invocation) { return run_devices(*o, invocation); };
}

RunFn setup_planners(Command& command) {
  auto o = std::make_shared<PlannersOptions>();
  command.flag("--markdown", o->markdown, "the table of docs/planners.md");
  return [o](const Invocation& invocation) { return run_planners(*o, invocation); };
}

}  // namespace heddle::cli
