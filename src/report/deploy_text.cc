#include "heddle/report/deploy_text.h"

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

std::string notes_of(const Workloads& w) {
  std::string text;
  for (const auto& note : w.notes) text += note + "\n";
  return text;
}

}  // namespace

Json workloads_json(const Workloads& w) {
  Json groups = Json::array(), hosts = Json::array();
  for (const auto& g : w.groups)
    groups.push_back({{"name", g.name},
                      {"class", g.device_class},
                      {"workers", g.workers},
                      {"devices", g.devices()},
                      {"used", g.used}});
  for (const auto& h : w.hosts)
    hosts.push_back({{"name", h.name}, {"class", h.host_class}, {"devices", h.devices}});
  Json out = {{"name", w.name}, {"drain_s", w.drain_s}, {"notes", w.notes}};
  if (w.is_fleet)
    out["workers"] = std::move(groups);
  else
    out["hosts"] = std::move(hosts);
  return out;
}

std::string workloads_text(const Workloads& w) {
  if (!w.is_fleet) {
    TextTable table({{"host"}, {"class"}, {"devices"}});
    for (const auto& h : w.hosts) table.add_row({h.name, h.host_class, join_names(h.devices)});
    return table.to_string() + notes_of(w);
  }
  TextTable table({{"workload"}, {"class"}, {"processes", kRight}, {"devices", kRight}, {"used", kRight}});
  table.add_row({w.name, "", std::to_string(1 + w.settings.standbys), "", ""});
  for (const auto& g : w.groups)
    table.add_row({g.name, g.device_class, std::to_string(g.workers), std::to_string(g.devices()),
                   std::to_string(g.used)});
  return table.to_string() + notes_of(w);
}

}  // namespace heddle
