// DiviML's throughput figures: Table IV (a batch of pictures in four parts on ten modules).
#include <algorithm>

#include "bench_diviml.h"

namespace heddle::bench {
namespace {

using Family = RandomWiredOptions::Family;
using Dependency = RandomWiredOptions::Dependency;

constexpr double kThroughputSeconds = 5;
constexpr int kImages = 128;

// Table IV, images per second.
constexpr PaperRow kTable4[] = {
    {Dependency::kSeries, 1, 54, 56, 74, 75, 84, 87, 114, 135, 164},
    {Dependency::kSeries, 2, 48, 50, 67, 66, 75, 78, 95, 119, 180},
    {Dependency::kSeries, 3, 49, 51, 68, 70, 78, 81, 116, 129, 196},
    {Dependency::kSeries, 4, 47, 48, 65, 67, 76, 79, 73, 126, 209},
    {Dependency::kWeak, 2, 51, 53, 76, 75, 86, 87, 89, 137, 182},
    {Dependency::kWeak, 3, 49, 52, 73, 73, 82, 85, 72, 137, 181},
    {Dependency::kWeak, 4, 47, 50, 72, 74, 82, 84, 65, 138, 207},
};

Status add_network(const PaperRow& reference, const BenchOptions& options, const Control& control,
                   std::vector<BenchRow>& rows) {
  const WiredCase which{Family::kErdosRenyi, reference.dependency, 10, 10, reference.channels};
  HEDDLE_ASSIGN_OR_RETURN(const Problem problem,
                          wired_batch_problem(which, kImages, static_cast<uint64_t>(options.seed)));
  const std::string instance = which.name() + ", B=" + std::to_string(kImages);
  const double seconds = options.time_limit_s > 0 ? options.time_limit_s : kThroughputSeconds;
  const size_t begin = rows.size();
  double best_device = 0, automatic = 0;
  SharedBound bounds(problem);
  BestOf best;
  for (const auto& [planner, column] : kPaperColumns) {
    HEDDLE_ASSIGN_OR_RETURN(const auto result,
                            plan_within(planner, problem, instance, seconds, options, control));
    const std::string name = planner;
    const double rate = 1e6 * kImages / result.value_us;
    if (name == "single") best_device = rate;
    if (name == "auto") automatic = result.value_us;
    best.add(name, result.value_us);
    HEDDLE_RETURN_IF_ERROR(bounds.add(result));
    auto r = diviml_row(instance, planner, name + ", throughput over best device's", "x", rate / best_device);
    r.beside("images per s", rate);
    set_trajectory(r, result.trajectory, seconds);
    r.against(reference.*column / reference.best, "DiviML, Table IV");
    rows.push_back(r);
  }
  share_best_known(rows, begin);
  auto bound = diviml_row(instance, "bound", "upper bound over best device's throughput", "x",
                          1e6 * kImages / bounds.best().us / best_device);
  bound.against(reference.bound / reference.best, "DiviML, Table IV");
  rows.push_back(bound);
  auto gain = diviml_row(instance, "best", "splitting's throughput over best heuristic's", "x",
                         best.heuristic / best.split);
  gain.against(reference.split / std::max(reference.sa, reference.heft), "DiviML, Table IV");
  rows.push_back(gain);
  rows.push_back(diviml_row(instance, "auto", "auto's throughput over MILP's and MILP-SPLIT's", "x",
                            best.paper / automatic));
  rows.push_back(
      diviml_row(instance, "auto", "auto's throughput over the best split's", "x", best.split / automatic));
  return {};
}

}  // namespace

Status bench_diviml_throughput(const BenchOptions& options, const Control& control,
                               std::vector<BenchRow>& rows) {
  if (!wanted(options, "table4")) return {};
  for (const PaperRow& reference : kTable4)
    HEDDLE_RETURN_IF_ERROR(
        whole_instance(control, rows, [&] { return add_network(reference, options, control, rows); }));
  return {};
}

}  // namespace heddle::bench
