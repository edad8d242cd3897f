// Cuts a model for cold starts.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>

#include "cold_child.h"
#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/quantiles.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/temporary_file.h"
#include "heddle/plan/plan_file.h"
#include "heddle/planners/planner.h"
#include "heddle/runtime/cold_plan.h"
#include "heddle/session/cold_start.h"

namespace heddle {
namespace {

constexpr int kMostUsualWorkers = 4;
constexpr int kPieces = 4;
constexpr int kRefinements = 2;
// A sample is the median of this many starts, or of those that fit into the time.
constexpr size_t kMostStarts = 3;
constexpr double kSampleSeconds = 2;
// The best cuts by the prediction are then started for real: each this many times, or as often as fits.
constexpr size_t kMostTrials = 5;
constexpr double kTrialSeconds = 6;
// Ops with a large share of the parameters are split into pieces of this share for each load worker...
constexpr int64_t kPiecesPerWorker = 4;
// ...but not smaller than what a product of its own costs.
constexpr int64_t kLeastSplitBytes = 4 << 20;

Status write(const Problem& problem, Plan plan, const std::string& path) {
  PlannerOutput output;
  output.plan = std::move(plan);
  HEDDLE_ASSIGN_OR_RETURN(const auto result, verified_result("cold", problem, std::move(output), 0));
  return write_plan_file(path, plan_file(problem, result, 1));
}

struct ColdTried {
  double predicted_us = 0;  // of a request
  double least_share = 0;   // ColdCutOutcome's
  int64_t split_bytes = 0;  // ImportOptions::split_bytes to try next; 0: none
};

class ColdPlanning {
 public:
  // `tried`: path of the plans that are tried. The plan of the whole model is there.
  ColdPlanning(const std::string& tried, const ColdSettings& settings, const Control& control)
      : path_(tried), settings_(settings), control_(control), machine_(machine_of(settings)) {
    // Samples have a cache of their own, because the user's cache should keep the plan's segments only.
    if (!settings.cache_folder.empty()) cache_folder_ = tried + ".samples";
  }
  ~ColdPlanning() {
    std::error_code ignored;
    if (!cache_folder_.empty()) std::filesystem::remove_all(cache_folder_, ignored);
  }

  // Writes the best cut to `path`.
  Result<ColdTried> run(const std::string& path) {
    HEDDLE_ASSIGN_OR_RETURN(file_, read_plan_file(path_));
    HEDDLE_ASSIGN_OR_RETURN(const Sample whole, sample(file_.plan));
    // A segment's own cost is still unknown and counts as 0, so that every model with several ops is cut.
    HEDDLE_ASSIGN_OR_RETURN(const ColdCosts first, fit_cold_costs(file_.problem, whole.seen(), whole.seen()));
    HEDDLE_ASSIGN_OR_RETURN(Plan plan, cut(first, kPieces));
    ColdCosts used = first;
    std::vector<Plan> cuts = {plan};
    for (int round = 0; round <= kRefinements && plan.segments.size() > 1; ++round) {
      HEDDLE_RETURN_IF_ERROR(write(file_.problem, plan, path_));
      HEDDLE_ASSIGN_OR_RETURN(const Sample parts, sample(plan));
      HEDDLE_ASSIGN_OR_RETURN(const ColdCosts costs,
                              fit_cold_costs(file_.problem, whole.seen(), parts.seen()));
      HEDDLE_ASSIGN_OR_RETURN(Plan better, cut(costs, 0));
      used = costs;
      const bool settled = same_cut(plan, better);
      plan = std::move(better);
      cuts.push_back(plan);
      if (settled) break;
    }
    // The prediction ignores contention between compiling threads, so fewer segments may be better.
    for (int fewer = static_cast<int>(plan.segments.size()); --fewer > 0;) {
      HEDDLE_ASSIGN_OR_RETURN(Plan other, cut(used, fewer));
      cuts.push_back(std::move(other));
    }
    HEDDLE_ASSIGN_OR_RETURN(plan, earliest(std::move(cuts)));
    HEDDLE_RETURN_IF_ERROR(write(file_.problem, plan, path));
    ColdTried tried;
    HEDDLE_ASSIGN_OR_RETURN(tried.predicted_us, predict(used, plan));
    tried.least_share = cold_cut_bound(file_.problem, used, machine_, threads(plan)) / tried.predicted_us;
    tried.split_bytes = wanted_split(used);
    return tried;
  }

 private:
  struct Sample {
    Plan plan;
    std::vector<double> compile_us, run_us;
    ColdSample seen() const { return {&plan, compile_us, run_us}; }
  };

  static bool same_cut(const Plan& a, const Plan& b) {
    if (a.segments.size() != b.segments.size()) return false;
    for (size_t s = 0; s < a.segments.size(); ++s) {
      if (a.segments[s].ops != b.segments[s].ops) return false;
    }
    return true;
  }

  Result<Plan> cut(const ColdCosts& costs, int segments) const {
    return cold_plan(file_.problem,
                     {.segments = segments, .device = {}, .costs = &costs, .machine = machine_});
  }

  int threads(const Plan& plan) const {
    const auto cores = file_.problem.cluster->device(plan.segments[0].device).cores.size();
    return std::max(1, static_cast<int>(cores));
  }

  // From the request's start to its end, by the same times as the bound. Those of another start would differ
  // by more than the cut.
  Result<double> predict(const ColdCosts& costs, const Plan& plan) const {
    std::vector<ColdTask> tasks;
    for (const Segment& segment : plan.segments) {
      ColdTask task;
      task.compile_us = costs.segment_us;
      task.threads = threads(plan);
      for (const OpId op : segment.ops) {
        task.compile_us += costs.compile_us[op.index()];
        task.run_us += costs.run_us[op.index()];
      }
      if (!tasks.empty()) task.after.push_back(static_cast<int32_t>(tasks.size()) - 1);
      tasks.push_back(std::move(task));
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto times, predict_cold_start(tasks, machine_));
    return times.back().finish_us;
  }

  // The size at which parameters should be split, if one op takes longer than a load worker's share of all; 0
  // if no op does, or its parameters are small.
  int64_t wanted_split(const ColdCosts& costs) const {
    const Graph& graph = *file_.problem.graph;
    const double all = std::accumulate(costs.compile_us.begin(), costs.compile_us.end(), 0.0);
    const auto heaviest = std::max_element(costs.compile_us.begin(), costs.compile_us.end());
    if (machine_.load_workers < 2 || *heaviest * machine_.load_workers <= all) return 0;
    const int64_t piece =
        std::max(kLeastSplitBytes, graph.total_param_bytes() / (kPiecesPerWorker * machine_.load_workers));
    const OpId op(static_cast<size_t>(heaviest - costs.compile_us.begin()));
    for (const ParamId p : graph.op(op).params) {
      if (graph.param(p).bytes > piece) return piece;
    }
    return 0;
  }

  // The cut whose starts, in turns, have their first output earliest in the median.
  Result<Plan> earliest(std::vector<Plan> cuts) {
    std::vector<Plan> distinct;
    for (Plan& plan : cuts) {
      const auto same = [&](const Plan& other) { return same_cut(plan, other); };
      if (std::none_of(distinct.begin(), distinct.end(), same)) distinct.push_back(std::move(plan));
    }
    if (distinct.size() == 1) return std::move(distinct.front());
    ColdRunOptions real = start_options(settings_, control_);
    real.requests = 1;
    std::vector<std::vector<double>> first_output(distinct.size());
    const Stopwatch watch;
    do {
      for (size_t i = 0; i < distinct.size(); ++i) {
        HEDDLE_RETURN_IF_ERROR(write(file_.problem, distinct[i], path_));
        HEDDLE_ASSIGN_OR_RETURN(const ColdRun one, start(real));
        first_output[i].push_back(one.first_output_us);
      }
    } while (first_output[0].size() < kMostTrials && watch.seconds() < kTrialSeconds);
    size_t best = 0;
    for (size_t i = 1; i < distinct.size(); ++i) {
      if (median_us(first_output[i]) < median_us(first_output[best])) best = i;
    }
    return std::move(distinct[best]);
  }

  // Starts of the plan at the path with nothing overlapping.
  Result<Sample> sample(const Plan& plan) {
    const ColdRunOptions alone = without_overlap(start_options(settings_, control_));
    if (!cache_folder_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const ColdRun filled, start(alone));
    }
    const size_t segments = plan.segments.size();
    std::vector<std::vector<double>> compile(segments), run(segments);
    const Stopwatch watch;
    do {
      HEDDLE_ASSIGN_OR_RETURN(const ColdRun one, start(alone));
      for (size_t s = 0; s < segments; ++s) {
        const ColdSegment& segment = one.requests.front()[s];
        compile[s].push_back(segment.loading.load_us + segment.loading.compile_us);
        run[s].push_back(segment.finish_us - segment.start_us);
      }
    } while (compile[0].size() < kMostStarts && watch.seconds() < kSampleSeconds);
    Sample result;
    result.plan = plan;
    for (size_t s = 0; s < segments; ++s) {
      result.compile_us.push_back(median_us(compile[s]));
      result.run_us.push_back(median_us(run[s]));
    }
    return result;
  }

  Result<ColdRun> start(const ColdRunOptions& options) {
    auto result = cold_start_in_child(path_, options, cache_folder_, settings_.cache_bytes);
    ++starts_;
    control_.report("trying cuts", starts_, 0);
    return result;
  }

  const std::string& path_;
  const ColdSettings& settings_;
  const Control& control_;
  std::string cache_folder_;
  ColdMachine machine_;
  PlanFile file_;
  int starts_ = 0;
};

}  // namespace

int usual_load_workers() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostUsualWorkers);
}

double cold_bound_us(const ColdCutOutcome& cut, const ColdReport& predicted) {
  if (cut.least_share == 0) return 0;
  return predicted.predicted_us - predicted.predicted_request_us * (1 - cut.least_share);
}

namespace {

// The model in segments by weight; 0: as one.
Status write_by_weight(const ModelSpec& source, const ProblemSettings& problem, int segments,
                       const std::string& path, const Control& control) {
  const auto planned = run_in_child([&]() -> Result<Json> {
    ProblemSettings settings = problem;
    // Cuts by weight do not use the ops' times.
    settings.measure = false;
    HEDDLE_ASSIGN_OR_RETURN(const auto session, open_session(source, settings, control));
    ColdPlanOptions options;
    options.segments = segments;
    HEDDLE_ASSIGN_OR_RETURN(Plan plan, cold_plan(session.problem, options));
    HEDDLE_RETURN_IF_ERROR(write(session.problem, std::move(plan), path));
    return Json(true);
  });
  return planned.ok() ? Status() : Status(planned.error());
}

Result<ColdTried> write_tried(const ModelSpec& source, const ProblemSettings& problem,
                              const ColdSettings& settings, const std::string& path, const Control& control) {
  const TemporaryFile whole("cold-tried.json");
  HEDDLE_RETURN_IF_ERROR(write_by_weight(source, problem, 1, whole.path(), control));
  return ColdPlanning(whole.path(), settings, control).run(path);
}

}  // namespace

Result<ColdCutOutcome> plan_cold(const ModelSpec& source, const ProblemSettings& problem, int segments,
                                 const ColdSettings& settings, const std::string& path,
                                 const Control& control) {
  if (segments > 0 || settings.budget_bytes > 0) {
    HEDDLE_RETURN_IF_ERROR(write_by_weight(source, problem, segments, path, control));
    return ColdCutOutcome{};
  }
  HEDDLE_ASSIGN_OR_RETURN(const ColdTried tried, write_tried(source, problem, settings, path, control));
  if (source.import.split_bytes > 0 || tried.split_bytes == 0)
    return ColdCutOutcome{tried.least_share, source.import.split_bytes};
  ModelSpec split = source;
  split.import.split_bytes = tried.split_bytes;
  const TemporaryFile other("cold-split.json");
  HEDDLE_ASSIGN_OR_RETURN(const ColdTried in_pieces,
                          write_tried(split, problem, settings, other.path(), control));
  if (in_pieces.predicted_us >= tried.predicted_us) return ColdCutOutcome{tried.least_share, 0};
  HEDDLE_ASSIGN_OR_RETURN(const PlanFile better, read_plan_file(other.path()));
  HEDDLE_RETURN_IF_ERROR(write_plan_file(path, better));
  return ColdCutOutcome{in_pieces.least_share, split.import.split_bytes};
}

}  // namespace heddle
