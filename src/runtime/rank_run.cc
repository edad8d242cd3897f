#include "heddle/runtime/rank_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "heddle/graph/model.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/sampling.h"
#include "inputs.h"
#include "mailbox.h"
#include "output_check.h"

namespace heddle {
namespace {

constexpr int64_t kStartLeadNs =
    300'000;  // from the word to start until the start, beside the words' own way

class RankRunner {
 public:
  RankRunner(RankGroup& group, const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
             const RankRunOptions& options)
      : group_(group), problem_(problem), plan_(plan), model_(std::move(model)), options_(options) {}

  Result<RunRecord> run() {
    HEDDLE_RETURN_IF_ERROR(prepare());
    const int total = options_.run.warmups + options_.run.repeats;
    for (int i = 0; i < total; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const bool on, run_request(i));
      if (!on) break;
    }
    if (first()) summarise();
    HEDDLE_RETURN_IF_ERROR(bring_outputs());
    Status verified;
    if (first() && options_.run.verify && model_ && executor_->moves_data()) verified = verify();
    HEDDLE_RETURN_IF_ERROR(group_.agree(verified));
    return record_;
  }

 private:
  bool first() const { return group_.rank() == 0; }

  Status prepare() {
    ExecutorOptions create;
    create.deadline = options_.run.deadline;
    create.progress = first() ? options_.run.progress : nullptr;
    create.ranks = RankOptions{&group_, options_.rank_of_device, options_.real_transfers};
    HEDDLE_ASSIGN_OR_RETURN(executor_, Executor::create(problem_, plan_, model_, create));
    if (first()) {
      HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem_, plan_));
      record_.predicted_us = timeline.makespan_us;
      record_.rtol = options_.run.rtol;
      record_.atol = options_.run.atol;
      record_.warmups = options_.run.warmups;
      record_.steps.resize(plan_.steps.size());
      durations_.resize(plan_.steps.size());
    }
    Status given;
    if (first() && executor_->moves_data()) {
      auto inputs = make_inputs(*problem_.graph, options_.run.inputs);
      if (inputs.ok()) {
        inputs_ = std::move(inputs).value();
        give_inputs(*executor_, inputs_);
      } else {
        given = std::move(inputs).error();
      }
    }
    HEDDLE_RETURN_IF_ERROR(group_.agree(given));
    if (!executor_->moves_data()) return {};
    for (const TensorView& view : executor_->inputs(0))
      HEDDLE_RETURN_IF_ERROR(group_.broadcast_bytes({view.data, static_cast<size_t>(view.bytes)}));
    return {};
  }

  // False: rank 0's deadline has come, and what is measured is enough.
  Result<bool> run_request(int number) {
    const Deadline& deadline = options_.run.deadline;
    const bool enough = first() && !record_.latencies_us.empty() && deadline.should_stop();
    int64_t before = now_ns();
    HEDDLE_ASSIGN_OR_RETURN(const int64_t offset, group_.clock_offset_ns(4));
    before = now_ns() - before;  // four round trips for each other rank: more than the words to start take
    const int64_t start = enough ? 0 : now_ns() + kStartLeadNs + before;
    std::string word(sizeof start, '\0');
    std::memcpy(word.data(), &start, sizeof start);
    HEDDLE_ASSIGN_OR_RETURN(word, group_.broadcast(std::move(word)));
    int64_t theirs = 0;
    if (word.size() != sizeof theirs)
      return Error(Code::kInternal, "rank 0 said something else than when to start");
    std::memcpy(&theirs, word.data(), sizeof theirs);
    if (theirs == 0) return false;
    StreamOptions one;
    one.start_at_ns = theirs - offset;
    // The deadline is looked at between requests, by rank 0 alone; a cancelled rank stops all.
    one.deadline = Deadline::never(deadline.token());
    RequestTiming timing;
    one.done = [&](const RequestTiming& t) { timing = t; };
    const auto result = executor_->run_stream(one);
    HEDDLE_RETURN_IF_ERROR(group_.agree(result.ok() ? Status() : Status(result.error())));
    HEDDLE_RETURN_IF_ERROR(collect(timing, number));
    return true;
  }

  // Rank 0 puts the steps' times together: a transfer between ranks starts on one and ends on another.
  Status collect(const RequestTiming& timing, int number) {
    const size_t n = plan_.steps.size();
    std::string own(n * sizeof(StepTiming), '\0');
    std::memcpy(own.data(), timing.steps.data(), own.size());
    HEDDLE_ASSIGN_OR_RETURN(const auto all, group_.gather(std::move(own)));
    if (!first() || number < options_.run.warmups) return {};
    std::vector<StepTiming> steps(n);
    double latency = 0;
    for (const auto& text : all) {
      if (text.size() != n * sizeof(StepTiming))
        return Error(Code::kInternal, "a rank reported on another number of steps than the plan has");
      std::vector<StepTiming> theirs(n);
      std::memcpy(theirs.data(), text.data(), text.size());
      for (size_t s = 0; s < n; ++s) {
        steps[s].start_us = std::max(steps[s].start_us, theirs[s].start_us);
        steps[s].finish_us = std::max(steps[s].finish_us, theirs[s].finish_us);
        latency = std::max(latency, theirs[s].finish_us);
      }
    }
    for (size_t s = 0; s < n; ++s) {
      // Clocks of two machines agree to some microseconds only.
      steps[s].finish_us = std::max(steps[s].finish_us, steps[s].start_us);
      durations_[s].push_back(steps[s].finish_us - steps[s].start_us);
    }
    record_.latencies_us.push_back(latency);
    timelines_.push_back(std::move(steps));
    if (options_.run.progress != nullptr)
      options_.run.progress->report({.what = "running",
                                     .done = static_cast<double>(timelines_.size()),
                                     .total = static_cast<double>(options_.run.repeats)});
    return {};
  }

  void summarise() {
    record_.repeats = static_cast<int>(timelines_.size());
    record_.measured_us = median_us(record_.latencies_us);
    size_t shown = 0;
    for (size_t i = 1; i < timelines_.size(); ++i) {
      if (std::fabs(record_.latencies_us[i] - record_.measured_us) <
          std::fabs(record_.latencies_us[shown] - record_.measured_us))
        shown = i;
    }
    for (size_t s = 0; s < record_.steps.size(); ++s) {
      MeasuredStep& step = record_.steps[s];
      step.start_us = std::max(timelines_[shown][s].start_us, 0.0);
      step.finish_us = std::max(timelines_[shown][s].finish_us, 0.0);
      step.median_us = median_us(durations_[s]);
      step.rel_spread = relative_spread(durations_[s]);
    }
  }

  Status bring_outputs() {
    if (!executor_->moves_data()) return {};
    const auto views = executor_->outputs(0);
    for (size_t i = 0; i < views.size(); ++i) {
      const OpId producer = problem_.graph->tensor(problem_.graph->outputs()[i]).producer;
      int owner = 0;
      for (const Segment& segment : plan_.segments) {
        if (producer.valid() && std::binary_search(segment.ops.begin(), segment.ops.end(), producer))
          owner = options_.rank_of_device[segment.device.index()];
      }
      HEDDLE_RETURN_IF_ERROR(group_.bring_bytes(owner, {views[i].data, static_cast<size_t>(views[i].bytes)}));
    }
    return {};
  }

  Status verify() {
    HEDDLE_ASSIGN_OR_RETURN(const auto expected, reference_outputs(*model_, inputs_));
    return note_comparison(*problem_.graph, executor_->outputs(0), expected, record_);
  }

  RankGroup& group_;
  const Problem& problem_;
  const Plan& plan_;
  std::shared_ptr<const Model> model_;
  const RankRunOptions& options_;
  std::unique_ptr<Executor> executor_;
  std::vector<TensorValue> inputs_;
  RunRecord record_;
  std::vector<std::vector<StepTiming>> timelines_;
  std::vector<std::vector<double>> durations_;  // per step
};

}  // namespace

Result<RunRecord> run_plan_on_ranks(RankGroup& group, const Problem& problem, const Plan& plan,
                                    std::shared_ptr<const Model> model, const RankRunOptions& options) {
  if (options.run.repeats < 1 || options.run.warmups < 0 || options.run.in_flight != 1) {
    return Error(Code::kInvalidInput,
                 "a run over several ranks needs at least 1 repeat, 0 warm-ups and has 1 request in flight");
  }
  return RankRunner(group, problem, plan, std::move(model), options).run();
}

}  // namespace heddle
