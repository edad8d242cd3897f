#include "kept_instance.h"

#include <fmt/format.h>

#include <vector>

#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/base/json.h"

namespace heddle {

std::string keep_instance(const Fleet& fleet, const FleetPlan* plan, const std::string& arrivals) {
  Hasher hash;
  hash.text(to_json(fleet).dump()).text(plan == nullptr ? "" : to_json(*plan, fleet).dump()).text(arrivals);
  const std::string name = "beyond-bound-" + hex64(hash.value());
  std::vector<std::string> files = {name + "-fleet.json"};
  Status kept = write_fleet(files.back(), fleet);
  if (kept.ok() && plan != nullptr)
    kept = write_fleet_plan(files.emplace_back(name + "-plan.json"), *plan, fleet);
  if (kept.ok() && !arrivals.empty())
    kept = write_file_atomic(files.emplace_back(name + "-arrivals.csv"), arrivals);
  return kept.ok() ? fmt::format("please report it with {}", fmt::join(files, ", "))
                   : "its files could not be kept: " + kept.error().to_string();
}

}  // namespace heddle
