#include "heddle/report/fleet_file_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

double total_us(const std::vector<double>& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

}  // namespace

std::string new_fleet_table(const Fleet& fleet, int64_t batches) {
  TextTable table({{"model"},
                   {"blocks", kRight},
                   {"class"},
                   {"batch 1", kRight},
                   {"batch " + std::to_string(batches), kRight},
                   {"SLO", kRight},
                   {"times"}});
  for (const auto& m : fleet.models)
    for (size_t c = 0; c < fleet.classes.size(); ++c) {
      const auto& whole = m.latency_us[c].front();
      table.add_row({m.name, std::to_string(m.blocks), fleet.classes[c].name,
                     format_us(total_us(whole.front())), format_us(total_us(whole.back())),
                     format_us(m.slo_us), origin_name(m.times_from[c]->origin)});
    }
  return table.to_string();
}

std::string measured_fleet_table(const Fleet& fleet, int64_t batches) {
  TextTable table({{"model"},
                   {"blocks", kRight},
                   {"class"},
                   {"batch 1", kRight},
                   {"batch " + std::to_string(batches), kRight},
                   {"shares"},
                   {"SLO", kRight}});
  for (const auto& m : fleet.models)
    for (size_t c = 0; c < fleet.classes.size(); ++c) {
      const auto sum = [](const std::vector<double>& times) { return format_us(total_us(times)); };
      // The smallest share at batch 1 beside the whole device.
      const auto v = m.latency_us[c].size();
      const auto shares =
          v < 2 ? "1/1" : "1/" + std::to_string(v) + ": " + sum(m.latency_us[c].back().front());
      table.add_row({m.name, std::to_string(m.blocks), fleet.classes[c].name, sum(m.latency_us[c][0].front()),
                     sum(m.latency_us[c][0].back()), shares, format_us(m.slo_us)});
    }
  return table.to_string();
}

Json fleet_models_json(const Fleet& fleet) {
  Json models = Json::array();
  for (const auto& m : fleet.models)
    models.push_back({{"model", m.name}, {"blocks", m.blocks}, {"slo_us", m.slo_us}});
  return models;
}

std::string fleet_precision_text(const FleetPrecision& chosen) {
  if (chosen.models.empty()) return "all classes compute in f32, the only type that they have\n";
  const bool all = std::ranges::all_of(chosen.models, &ModelTypeError::allowed);
  std::string text = fmt::format("all classes compute in {}; the budget\n",
                                 precision_name(all ? chosen.narrow : Precision::kF32));
  for (const ModelTypeError& m : chosen.models)
    text += fmt::format("  {} {} in {}: {:.4g} % of decisions as in f32, mean error {:.2g} of the range\n",
                        m.allowed ? "allows" : "forbids", m.model, precision_name(chosen.narrow),
                        100 * m.agreement, m.mean);
  return text;
}

Json fleet_precision_json(const FleetPrecision& chosen) {
  Json list = Json::array();
  for (const ModelTypeError& m : chosen.models)
    list.push_back({{"model", m.model},
                    {"type", precision_name(chosen.narrow)},
                    {"agreement", m.agreement},
                    {"mean", m.mean},
                    {"allowed", m.allowed}});
  return list;
}

}  // namespace heddle
