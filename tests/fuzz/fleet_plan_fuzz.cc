// Any JSON as a plan of a small fleet: it is refused with a message, or it reads back as itself, the checker has an
// opinion of it, and a plan that passes can be deployed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_plan.h"
#include "json_mutator.h"
#include "require.h"

namespace {

// Two classes, of which one has memory, prices and power; a model of one block and one of three.
constexpr std::string_view kFleet = R"({"format": "heddle-fleet", "version": 1, "name": "two",
  "classes": [{"name": "a", "count": 2, "nic": 1e9, "memory": "1GB", "cost_per_hour": 3, "watts": 70},
              {"name": "b", "count": 3, "nic": 2e9, "share_levels": 2, "cost_per_hour": 1, "watts": 30}],
  "models": [{"name": "m", "slo": 9e4, "cut_bytes": [0, 5], "latency_us": {"a": [[[10]]], "b": [[[30]], [[70]]]}},
             {"name": "n", "slo": 9e4, "cut_bytes": [0, 7, 9, 5],
              "latency_us": {"a": [[[10, 20, 5]]], "b": [[[40, 80, 20], [60, 120, 30]], [[80, 160, 40]]]}}]})";

const heddle::Fleet& fleet() {
  static const heddle::Fleet made = [] {
    auto read = heddle::fleet_from_json(*heddle::parse_json(kFleet));
    require(read.ok());
    return std::move(*read);
  }();
  return made;
}

}  // namespace

JsonPlace json_place(std::string_view input) { return {0, input.size()}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json = heddle::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  auto plan = heddle::fleet_plan_from_json(*json, fleet());
  if (!plan.ok()) {
    require(!plan.error().message().empty());
    return 0;
  }
  const auto written = heddle::to_json(*plan, fleet());
  const auto again = heddle::fleet_plan_from_json(written, fleet());
  require(again.ok() && heddle::to_json(*again, fleet()) == written);
  if (heddle::fleet_plan_problems(fleet(), *plan).empty()) require(heddle::deploy(fleet(), *plan).ok());
  // A user's plan is evaluated before it is deployed.
  heddle::evaluate_fleet_plan(fleet(), *plan);
  static_cast<void>(heddle::devices_used(fleet(), *plan));
  return 0;
}
