#include "bench_placement_reference.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/csv.h"

namespace heddle::bench {
namespace {

constexpr double kMaxObjective = 1e15;

double half_last_digit(const std::string& number) {
  const auto point = number.find('.');
  if (point == std::string::npos || number.find_first_of("eE") != std::string::npos) return 0;
  return 0.5 * std::pow(10.0, -static_cast<double>(number.size() - point - 1));
}

// "non-contiguous q=2" stays; so does "contiguous".
std::string mode_of(const std::string& setting, const std::string& mode) {
  if (mode == "contiguous" || mode.starts_with("non-contiguous")) return mode;
  return setting == "latency" ? "non-contiguous q=2" : "non-contiguous";
}

}  // namespace

Result<PlacementReferences> read_placement_references(const std::string& path) {
  static constexpr const char* kNeeded[] = {"setting", "graph",     "workload", "mode",
                                            "peer",    "objective", "feasible"};
  HEDDLE_ASSIGN_OR_RETURN(const auto table, CsvTable::read(path, kNeeded));
  PlacementReferences references;
  for (size_t row = 0; row < table.rows(); ++row) {
    const auto field = [&](const char* name) { return *table.text(row, name); };
    if (field("feasible") != "yes" || field("objective").empty()) continue;
    PlacementReference reference;
    HEDDLE_ASSIGN_OR_RETURN(reference.value, table.number(row, "objective", 0, kMaxObjective));
    reference.tolerance = half_last_digit(field("objective")) + 1e-9 * reference.value;
    reference.peer = field("peer");
    const auto key = field("setting") + "/" + field("graph") + "/" + field("workload") + "/" +
                     mode_of(field("setting"), field("mode"));
    const auto [entry, fresh] = references.emplace(key, reference);
    // Of two that are equal to the digits given the more precise.
    auto& best = entry->second;
    const double same = std::max(best.tolerance, reference.tolerance);
    if (!fresh && (reference.value < best.value - same ||
                   (reference.value <= best.value + same && reference.tolerance < best.tolerance)))
      best = reference;
  }
  return references;
}

}  // namespace heddle::bench
