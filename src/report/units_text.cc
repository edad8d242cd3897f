#include "heddle/report/units_text.h"

#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

// Measured times of units with their parameters in place, without estimates.
CostTable host_access_known(const Session& session) {
  CostTable known(session.problem.costs->num_ops(), session.problem.costs->num_devices());
  put_host_access(session, session.problem, known);
  return known;
}

std::vector<DeviceId> devices_with_host_access(const Problem& p) {
  std::vector<DeviceId> devices;
  for (const auto device : p.usable_devices()) {
    if (p.costs->has_host_access() && needs_load(*p.cluster, device)) devices.push_back(device);
  }
  return devices;
}

}  // namespace

Json units_json(const Session& session) {
  const auto& p = session.problem;
  const CostTable known = host_access_known(session);
  const auto in_place = devices_with_host_access(p);
  Json units = Json::array();
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    Json row = {{"unit", p.graph->op(OpId(u)).name}};
    for (const auto device : p.usable_devices()) {
      const auto cost = p.costs->at(OpId(u), device);
      row[p.cluster->device(device).name] = {
          {"us", cost.us}, {"origin", origin_name(cost.origin)}, {"spread", cost.rel_spread}};
    }
    for (const auto device : in_place) {
      const double us = p.costs->host_access_us(OpId(u), device);
      if (!(us < kImpossible)) continue;
      const bool measured = known.host_access_us(OpId(u), device) < kImpossible;
      Json& cell = row[p.cluster->device(device).name];
      cell["host_access_us"] = us;
      cell["host_access_origin"] = origin_name(measured ? Origin::kMeasured : Origin::kEstimated);
    }
    units.push_back(std::move(row));
  }
  return units;
}

std::string units_text(const Session& session) {
  const Problem& p = session.problem;
  std::vector<OpId> all;
  for (size_t u = 0; u < p.graph->num_ops(); ++u) all.emplace_back(u);
  std::vector<TextTable::Column> columns = {{"unit"}};
  for (const auto device : p.usable_devices()) columns.push_back({p.cluster->device(device).name, kRight});
  TextTable table(columns);
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    std::vector<std::string> row = {p.graph->op(OpId(u)).name};
    for (const auto device : p.usable_devices()) {
      const auto cost = p.costs->at(OpId(u), device);
      row.push_back(format_us(cost.us) +
                    (cost.origin == Origin::kMeasured ? "" : std::string(" ") + origin_name(cost.origin)));
    }
    table.add_row(row);
  }
  table.add_rule();
  std::vector<std::string> row = {"whole model as one segment"};
  for (const auto device : p.usable_devices()) row.push_back(format_us(p.costs->segment(all, device).us));
  table.add_row(row);
  return table.to_string();
}

// Times with parameters in place, and their ratio to those with parameters on the device.
std::string host_access_text(const Session& session) {
  const auto& p = session.problem;
  const auto devices = devices_with_host_access(p);
  if (devices.empty()) return "\nno device here reads parameters in host memory\n";
  const CostTable known = host_access_known(session);
  std::vector<TextTable::Column> columns = {{"parameters in place"}};
  for (const auto device : devices) columns.push_back({p.cluster->device(device).name, kRight});
  TextTable table(columns);
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    std::vector<std::string> row = {p.graph->op(OpId(u)).name};
    bool any = false;
    for (const auto device : devices) {
      const double us = p.costs->host_access_us(OpId(u), device), usual = p.costs->us(OpId(u), device);
      const bool measured = known.host_access_us(OpId(u), device) < kImpossible;
      any = any || us < kImpossible;
      row.push_back(us < kImpossible ? format_us(us) + (measured ? "" : " estimated") +
                                           (usual > 0 ? fmt::format(", x {:.2f}", us / usual) : "")
                                     : "-");
    }
    if (any) table.add_row(row);
  }
  const auto& sum = session.host_access;
  return "\n" + table.to_string() +
         fmt::format("\n{} measured now, {} already stored, {} failed\n", sum.measured, sum.present,
                     sum.failed) +
         (sum.first_failure.empty() ? "" : "first failure: " + sum.first_failure + "\n");
}

}  // namespace heddle
