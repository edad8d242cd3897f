#include "heddle/session/cold_start.h"

#include <algorithm>
#include <numeric>

#include "cold_child.h"
#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/quantiles.h"
#include "heddle/runtime/cold_plan.h"

namespace heddle {
namespace {

// For this request; a segment that stayed is not loaded again.
bool is_loaded(const ColdSegment& segment) { return segment.loading.begin_us >= 0; }

class ColdMeasurement {
 public:
  ColdMeasurement(const std::string& plan_path, const ColdSettings& settings, const Control& control)
      : path_(plan_path), settings_(settings), control_(control) {}

  Result<ColdReport> run() {
    HEDDLE_ASSIGN_OR_RETURN(file_, read_plan_file(path_));
    if (!file_.problem.model)
      return invalid_input(path_ + ": a cold start needs a real model; this plan's graph has none behind it");
    if (settings_.budget_bytes > 0 && settings_.requests < 2)
      return invalid_input(
          "a budget needs at least 2 requests, because it limits what stays in memory between them");
    const bool cached = !settings_.cache_folder.empty();
    total_ = settings_.repeats * (settings_.versus ? 2 : 1) + 2 + (cached && settings_.versus ? 1 : 0);
    const ColdRunOptions options = start_options(settings_, control_);
    ColdRunOptions filling = options;
    filling.verify = settings_.verify;
    ColdReport report;
    // The first start is compared with the unsplit model, and fills the caches.
    HEDDLE_ASSIGN_OR_RETURN(report.checked, start(filling));
    if (cached && settings_.versus) {
      HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const ColdWhole filled, whole());
    }
    HEDDLE_ASSIGN_OR_RETURN(const ColdRun apart, start(without_overlap(options)));
    HEDDLE_RETURN_IF_ERROR(measure_in_turns(options));
    summarise(report);
    HEDDLE_RETURN_IF_ERROR(predict(apart, report));
    return report;
  }

 private:
  void report_progress() {
    ++done_;
    control_.report("cold starts", done_, total_);
  }

  Result<ColdRun> start(const ColdRunOptions& options) {
    auto result = cold_start_in_child(path_, options, settings_.cache_folder, settings_.cache_bytes);
    report_progress();
    return result;
  }

  Result<ColdWhole> whole() {
    // OpenVINO's own cache is beside ours, on the same disk.
    const std::string folder = settings_.cache_folder.empty() ? "" : settings_.cache_folder + "/openvino";
    auto json = run_in_child([&]() -> Result<Json> {
      leave_out_hwloc_plugins();
      HEDDLE_ASSIGN_OR_RETURN(
          const ColdWhole w, openvino_cold_start(file_.problem, settings_.inputs, folder, *settings_.versus));
      return Json{w.read_us, w.compile_us, w.run_us, w.first_output_us, w.cpu_s};
    });
    report_progress();
    if (!json.ok()) return cold_start_failed("OpenVINO's cold start", json.error());
    return ColdWhole{(*json)[0], (*json)[1], (*json)[2], (*json)[3], (*json)[4]};
  }

  Status measure_in_turns(const ColdRunOptions& options) {
    for (int i = 0; i < settings_.repeats; ++i) {
      for (int turn = 0; turn < 2; ++turn) {
        if (control_.cancel.cancelled()) return cancelled_error("the cold starts were cancelled");
        // Ours, theirs, theirs, ours: so a machine that becomes slower favours neither side.
        if ((turn + i) % 2 == 0) {
          HEDDLE_ASSIGN_OR_RETURN(ColdRun s, start(options));
          starts_.push_back(std::move(s));
        } else if (settings_.versus) {
          HEDDLE_ASSIGN_OR_RETURN(const ColdWhole w, whole());
          wholes_.push_back(w);
        }
      }
    }
    return {};
  }

  Status predict(const ColdRun& apart, ColdReport& report) const;

  void summarise(ColdReport& report) {
    std::vector<size_t> order(starts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t i) { return starts_[i].first_output_us; });
    std::vector<double> times;
    for (const ColdRun& s : starts_) times.push_back(s.first_output_us);
    report.first_output_us = median_us(times);
    report.low_us = starts_[order.front()].first_output_us;
    report.high_us = starts_[order.back()].first_output_us;
    report.median = starts_[order[order.size() / 2]];
    for (const ColdSegment& s : report.median.requests.front()) {
      report.measured.push_back(
          {s.loading.load_us, s.loading.compile_us, s.wait_us, s.finish_us - s.start_us, s.loading.cached});
    }
    if (settings_.versus) report.versus = versus();
  }

  ColdReport::Versus versus() const {
    ColdReport::Versus v;
    std::vector<double> ratios, cpu, read, compile, run, first, theirs;
    for (size_t i = 0; i < wholes_.size(); ++i) {
      const ColdWhole& w = wholes_[i];
      ratios.push_back(starts_[i].first_output_us / w.first_output_us);
      cpu.push_back(w.cpu_s > 0 ? starts_[i].cpu_s / w.cpu_s : 0);
      read.push_back(w.read_us);
      compile.push_back(w.compile_us);
      run.push_back(w.run_us);
      first.push_back(w.first_output_us);
      theirs.push_back(w.cpu_s);
    }
    v.median = {median_us(read), median_us(compile), median_us(run), median_us(first), median_us(theirs)};
    v.ratio = median_us(ratios);
    v.cpu_ratio = median_us(cpu);
    return v;
  }

  const std::string& path_;
  const ColdSettings& settings_;
  const Control& control_;
  PlanFile file_;
  std::vector<ColdRun> starts_;
  std::vector<ColdWhole> wholes_;
  int done_ = 0, total_ = 0;
};

// Combines the segments' times from the start without overlap by the model of shared cores.
Status ColdMeasurement::predict(const ColdRun& apart, ColdReport& report) const {
  const Problem& problem = file_.problem;
  const Plan& plan = file_.plan;
  std::vector<ColdTask> tasks;
  std::vector<size_t> segments;  // of the tasks
  std::vector<int32_t> task_of(plan.segments.size(), -1);
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kRun) continue;
    const size_t s = step.segment.index();
    const Segment& segment = plan.segments[s];
    const auto& cores = problem.cluster->device(segment.device).cores;
    ColdTask task;
    const ColdSegment& alone = apart.requests.front()[s];
    task.load_us = alone.loading.load_us;
    task.compile_us = alone.loading.compile_us;
    task.run_us = alone.finish_us - alone.start_us;
    task.bytes = file_.problem.graph->param_bytes(segment.ops);
    // With a budget there is a second request, which shows the segments that did not stay.
    task.stays = settings_.budget_bytes == 0 || !is_loaded(report.median.requests[1][s]);
    task.threads = std::max<int>(1, static_cast<int>(cores.size()));
    for (const size_t before : segments) {
      const Segment& other = plan.segments[before];
      const auto& theirs = problem.cluster->device(other.device).cores;
      bool feeds = other.device == segment.device || std::any_of(cores.begin(), cores.end(), [&](int c) {
                     return std::find(theirs.begin(), theirs.end(), c) != theirs.end();
                   });
      for (const OpId op : segment.ops) {
        for (const TensorId t : problem.graph->op(op).inputs) {
          const OpId producer = problem.graph->tensor(t).producer;
          feeds |= producer.valid() && std::binary_search(other.ops.begin(), other.ops.end(), producer);
        }
      }
      if (feeds) task.after.push_back(task_of[before]);
    }
    task_of[s] = static_cast<int32_t>(tasks.size());
    tasks.push_back(std::move(task));
    segments.push_back(s);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto times, predict_cold_start(tasks, machine_of(settings_)));
  report.predicted.resize(plan.segments.size());
  double last = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const ColdTimes& at = times[t];
    const double alone = tasks[t].load_us + tasks[t].compile_us;
    const double slower = alone > 0 ? (at.ready_us - at.begin_us) / alone : 1;
    report.predicted[segments[t]] = {tasks[t].load_us * slower, tasks[t].compile_us * slower,
                                     at.start_us - at.ready_us, at.finish_us - at.start_us,
                                     apart.requests.front()[segments[t]].loading.cached};
    last = std::max(last, at.finish_us);
  }
  report.without_overlap_us = apart.first_output_us;
  report.predicted_us = apart.import_us + apart.prepare_us + last;
  report.predicted_request_us = last;
  return {};
}

}  // namespace

int64_t ColdReport::loaded(size_t request) const {
  return std::ranges::count_if(median.requests[request], is_loaded);
}

Result<ColdReport> measure_cold(const std::string& plan_path, const ColdSettings& settings,
                                const Control& control) {
  return ColdMeasurement(plan_path, settings, control).run();
}

}  // namespace heddle
