// Fleets beyond the published ones: three and four classes, and 100 to 100,000 devices.
#include "bench_ppipe.h"

namespace heddle::bench {
namespace {

// Classes in the order of the table, as many as asked for, with `devices` split evenly: the first
// classes have one more.
std::vector<std::pair<std::string, int64_t>> classes(const PpipeData& data, size_t count, int64_t devices) {
  std::vector<std::pair<std::string, int64_t>> list;
  const auto n = static_cast<int64_t>(count);
  for (size_t k = 0; k < count && k < data.class_names.size(); ++k)
    list.emplace_back(data.class_names[k], devices / n + (static_cast<int64_t>(k) < devices % n ? 1 : 0));
  return list;
}

}  // namespace

Status bench_ppipe_fleets(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  const auto& data = bench.data;
  const auto measure = [&](const PpipeGroup& group, size_t kinds, int64_t devices) -> Status {
    const auto& weights = data.weights.size() == group.models.size() ? data.weights : std::vector<double>{};
    HEDDLE_ASSIGN_OR_RETURN(const auto fleet,
                            ppipe_mixed_fleet(data, classes(data, kinds, devices), group.models, weights));
    const auto instance = group.name + ", " + std::to_string(kinds) + " classes, " + std::to_string(devices);
    HEDDLE_ASSIGN_OR_RETURN(auto m, measure_fleet_plan(bench, fleet, instance, "auto"));
    if (bench.control.cancel.cancelled()) return cancelled_error("the suite was stopped");
    rows.push_back(std::move(m.rate));
    rows.push_back(std::move(m.seconds));
    return {};
  };
  for (const auto& group : data.groups) {
    for (const size_t kinds : {size_t{3}, size_t{4}})
      if (kinds <= data.class_names.size()) HEDDLE_RETURN_IF_ERROR(measure(group, kinds, 120));
  }
  if (data.groups.empty()) return {};
  for (const size_t kinds : {size_t{2}, size_t{3}, size_t{4}})
    for (const int64_t devices : {100, 1000, 10'000, 100'000}) {
      if (kinds <= data.class_names.size())
        HEDDLE_RETURN_IF_ERROR(measure(data.groups.front(), kinds, devices));
    }
  return {};
}

}  // namespace heddle::bench
