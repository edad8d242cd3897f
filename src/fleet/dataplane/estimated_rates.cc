#include "heddle/fleet/estimated_rates.h"

#include <fmt/format.h>

#include <cmath>

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr double kSameWeight = 1e-9;  // relative

// The plan's rates in the order of the fleet's models; empty if the plan's models differ from the fleet's.
std::vector<double> rates_in_order(const Fleet& fleet, const PpipeReference& reference, bool& same_weights) {
  std::vector<double> rates;
  same_weights = true;
  if (reference.fleet.models.size() != fleet.models.size()) return {};
  for (const auto& m : fleet.models) {
    const int i = reference.fleet.model_named(m.name);
    if (i < 0) return {};
    const auto& published = reference.fleet.models[static_cast<size_t>(i)];
    same_weights &= std::abs(published.weight - m.weight) <= kSameWeight * m.weight;
    rates.push_back(published.estimated_rate_per_s);
  }
  return rates;
}

std::string weights_text(const Fleet& fleet, const PpipeReference& reference) {
  std::string text;
  for (const auto& m : fleet.models) {
    const auto& published = reference.fleet.models[static_cast<size_t>(reference.fleet.model_named(m.name))];
    text += (text.empty() ? "" : ",") + fmt::format("{:g}", published.weight);
  }
  return text;
}

}  // namespace

Result<std::vector<double>> np_rates(const Fleet& fleet, const FleetPlanOptions& options) {
  Fleet instant = fleet;
  for (auto& m : instant.models) m.estimated_rate_per_s = 0;
  FleetPlanOptions max_min = options;
  max_min.objective = FleetObjective::kMaxMin;
  max_min.load_per_s = 0;
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(instant, "np", max_min));
  std::vector<double> rates;
  for (const auto& m : plan.models) rates.push_back(m.rate_per_s);
  return rates;
}

Result<std::vector<double>> published_rates(const Fleet& fleet, const std::string& cluster,
                                            const std::vector<PpipeReference>& references) {
  const PpipeReference* other_weights = nullptr;
  for (const auto& r : references) {
    if (r.cluster != cluster) continue;
    bool same_weights = false;
    auto rates = rates_in_order(fleet, r, same_weights);
    if (rates.empty()) continue;
    if (same_weights) return rates;
    if (other_weights == nullptr) other_weights = &r;
  }
  if (other_weights != nullptr)
    return not_found("the plans for these models on " + quote_text(cluster) +
                     " have other weights; expected --weights " + weights_text(fleet, *other_weights));
  return not_found("there is no plan for exactly these models on " + quote_text(cluster));
}

Status set_estimated_rates(Fleet& fleet, const std::vector<double>& rates_per_s) {
  if (rates_per_s.size() != fleet.models.size())
    return invalid_input(std::to_string(fleet.models.size()) + " models have " +
                         std::to_string(rates_per_s.size()) + " estimated rates");
  for (size_t m = 0; m < rates_per_s.size(); ++m)
    if (!(rates_per_s[m] > 0 && std::isfinite(rates_per_s[m])))
      return invalid_input("model " + quote_text(fleet.models[m].name) + ": an estimated rate of " +
                           std::to_string(rates_per_s[m]) + "; expected more than 0 requests per second");
  for (size_t m = 0; m < rates_per_s.size(); ++m) fleet.models[m].estimated_rate_per_s = rates_per_s[m];
  return {};
}

}  // namespace heddle
