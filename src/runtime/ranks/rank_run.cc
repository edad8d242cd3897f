#include "heddle/runtime/rank_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "heddle/base/quantiles.h"
#include "heddle/graph/model.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/precision_error.h"
#include "run/inputs.h"
#include "run/sampling.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kRounds = 9;  // of a stream
constexpr int64_t kStartLeadNs =
    300'000;  // from the start message to the start, besides the messages' own time

class RankRunner {
 public:
  RankRunner(RankGroup& group, const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
             const RankRunOptions& options)
      : group_(group), problem_(problem), plan_(plan), model_(std::move(model)), options_(options) {}

  Result<RunRecord> run() {
    HEDDLE_RETURN_IF_ERROR(prepare());
    HEDDLE_RETURN_IF_ERROR(options_.run.in_flight > 1 ? measure_stream() : measure_latency());
    if (first()) summarise();
    if (stopped_) return record_;
    HEDDLE_RETURN_IF_ERROR(bring_outputs());
    // The model of rank 0 decides for all: other ranks may have none.
    HEDDLE_ASSIGN_OR_RETURN(
        const std::string verifies,
        group_.broadcast(options_.run.verify && model_ && executor_->moves_data() ? "yes" : "no"));
    if (verifies == "no") return record_;
    RunRecord measured = record_;
    const Status verified = verify();
    // After Ctrl-C the outputs are not compared, but what was measured counts.
    if (!verified.ok() && verified.error().code() == Code::kCancelled) return measured;
    HEDDLE_RETURN_IF_ERROR(verified);
    return record_;
  }

 private:
  bool first() const { return group_.rank() == 0; }
  bool streams() const { return options_.run.in_flight > 1; }

  ExecutorOptions executor_options() const {
    ExecutorOptions create;
    create.in_flight = options_.run.in_flight;
    create.deadline = options_.run.deadline;
    create.progress = first() ? options_.run.progress : nullptr;
    create.ranks = RankOptions{&group_, options_.rank_of_device, options_.real_transfers};
    return create;
  }

  Status prepare() {
    HEDDLE_ASSIGN_OR_RETURN(executor_, Executor::create(problem_, plan_, model_, executor_options()));
    if (first()) {
      HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem_, plan_));
      record_.predicted_us = streams() ? timeline.period_us : timeline.makespan_us;
      record_.requests_in_flight = streams() ? executor_->slots() : 1;
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
      } else {
        given = std::move(inputs).error();
      }
    }
    HEDDLE_RETURN_IF_ERROR(group_.agree(given));
    return spread_inputs();
  }

  // Gives the inputs of rank 0 to every slot of every rank.
  Status spread_inputs() {
    if (!executor_->moves_data()) return {};
    if (first()) give_inputs(*executor_, inputs_);
    for (int slot = 0; slot < executor_->slots(); ++slot) {
      for (const TensorView& view : executor_->inputs(slot))
        HEDDLE_RETURN_IF_ERROR(group_.broadcast_bytes({view.data, static_cast<size_t>(view.bytes)}));
    }
    return {};
  }

  // Start time for all ranks, on this rank's clock; 0: rank 0's deadline has expired and enough is measured.
  Result<int64_t> common_start() {
    const bool enough = first() && !record_.latencies_us.empty() && options_.run.deadline.should_stop();
    int64_t before = now_ns();
    HEDDLE_ASSIGN_OR_RETURN(const int64_t offset, group_.clock_offset_ns(4));
    before = now_ns() - before;  // four round trips per rank: longer than the start messages take
    const int64_t start = enough ? 0 : now_ns() + kStartLeadNs + before;
    std::string word(sizeof start, '\0');
    std::memcpy(word.data(), &start, sizeof start);
    HEDDLE_ASSIGN_OR_RETURN(word, group_.broadcast(std::move(word)));
    int64_t theirs = 0;
    if (word.size() != sizeof theirs)
      return internal_error("rank 0 sent another message than the time to start");
    std::memcpy(&theirs, word.data(), sizeof theirs);
    return theirs == 0 ? 0 : theirs - offset;
  }

  // Rank 0 alone checks the deadline, between requests; a cancelled rank stops all.
  Status run_together(StreamOptions stream) {
    stream.deadline = Deadline::never(options_.run.deadline.token());
    const auto result = executor_->run_stream(stream);
    return group_.agree(result.ok() ? Status() : Status(result.error()));
  }

  // Each request starts on all ranks at once.
  Status measure_latency() {
    for (int i = 0; i < options_.run.warmups + options_.run.repeats; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const bool on, run_round(1, i >= options_.run.warmups));
      if (!on) break;
    }
    return {};
  }

  // Rounds of requests, as within one process (run.cc).
  Status measure_stream() {
    const int slots = executor_->slots();
    if (options_.run.warmups > 0) {
      HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const bool on, run_round(options_.run.warmups * slots, false));
    }
    const int rounds = std::clamp(options_.run.repeats / (4 * slots), 1, kRounds);
    for (int round = 0; round < rounds; ++round) {
      const int count = options_.run.repeats / rounds + (round < options_.run.repeats % rounds ? 1 : 0);
      HEDDLE_ASSIGN_OR_RETURN(const bool on, run_round(count, true));
      if (!on) break;
    }
    return {};
  }

  // Each rank records its view of a request, from the round's start.
  Result<bool> run_round(int count, bool measured) {
    StreamOptions many;
    many.requests = count;
    HEDDLE_ASSIGN_OR_RETURN(many.start_at_ns, common_start());
    if (many.start_at_ns == 0) return false;
    const size_t n = plan_.steps.size();
    std::vector<StepTiming> seen(static_cast<size_t>(count) * (n + 1));  // the request itself, then its steps
    lane_of_slot_.assign(static_cast<size_t>(executor_->slots()), 0);
    many.done = [&](const RequestTiming& t) {
      StepTiming* to = &seen[static_cast<size_t>(t.request) * (n + 1)];
      lane_of_slot_[static_cast<size_t>(t.slot)] = t.lane;
      *to++ = {t.start_us, t.start_us + t.latency_us};
      for (const StepTiming& step : t.steps) *to++ = on_round(step, t.start_us);
    };
    const Status ran = run_together(many);
    if (!ran.ok() && ran.error().code() == Code::kCancelled && measured_rounds_ > 0) {
      stopped_ = true;
      return false;
    }
    HEDDLE_RETURN_IF_ERROR(ran);
    std::string own(seen.size() * sizeof(StepTiming), '\0');
    std::memcpy(own.data(), seen.data(), own.size());
    HEDDLE_ASSIGN_OR_RETURN(const auto all, group_.gather(std::move(own)));
    if (first() && measured) HEDDLE_RETURN_IF_ERROR(note_round(all, seen));
    measured_rounds_ += measured ? 1 : 0;
    return true;
  }

  static StepTiming on_round(const StepTiming& step, double start_us) {
    return {step.start_us < 0 ? -1 : step.start_us + start_us,
            step.finish_us < 0 ? -1 : step.finish_us + start_us};
  }

  // A request starts when the first rank starts it and ends when the last rank ends it. A transfer between
  // ranks starts on one rank and ends on another.
  Status note_round(const std::vector<std::string>& all, std::vector<StepTiming> seen) {
    const size_t n = plan_.steps.size(), count = seen.size() / (n + 1);
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].size() != seen.size() * sizeof(StepTiming))
        return internal_error("a rank reported another number of steps than the plan has");
      std::vector<StepTiming> theirs(seen.size());
      std::memcpy(theirs.data(), all[rank].data(), all[rank].size());
      for (size_t i = 0; i < seen.size(); ++i) {
        const bool request = i % (n + 1) == 0;
        seen[i].start_us = request ? std::min(seen[i].start_us, theirs[i].start_us)
                                   : std::max(seen[i].start_us, theirs[i].start_us);
        seen[i].finish_us = std::max(seen[i].finish_us, theirs[i].finish_us);
      }
    }
    std::vector<double> finishes;
    for (size_t r = 0; r < count; ++r) {
      const StepTiming* request = &seen[r * (n + 1)];
      finishes.push_back(request->finish_us);
      record_.latencies_us.push_back(request->finish_us - request->start_us);
      std::vector<StepTiming> steps;
      for (size_t s = 0; s < n; ++s) {
        StepTiming step = request[s + 1];
        if (step.finish_us >= 0) {
          // Clocks of two machines agree to some microseconds only.
          step.finish_us = std::max(step.finish_us, step.start_us);
          durations_[s].push_back(step.finish_us - step.start_us);
        }
        steps.push_back(on_round(step, -request->start_us));
      }
      timelines_.push_back(std::move(steps));
    }
    periods_.push_back(steady_period_us(finishes, executor_->slots()));
    report();
    return {};
  }

  void report() {
    if (options_.run.progress != nullptr)
      options_.run.progress->report({.what = "running",
                                     .done = static_cast<double>(timelines_.size()),
                                     .total = static_cast<double>(options_.run.repeats)});
  }

  void summarise() {
    record_.repeats = static_cast<int>(timelines_.size());
    const double usual = median_us(record_.latencies_us);
    record_.measured_us = streams() ? median_us(periods_) : usual;
    size_t shown = 0;
    for (size_t i = 1; i < timelines_.size(); ++i) {
      if (std::fabs(record_.latencies_us[i] - usual) < std::fabs(record_.latencies_us[shown] - usual))
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

  // Number of slots that served a request.
  int slots_used() const { return streams() ? std::min(executor_->slots(), options_.run.repeats) : 1; }

  Status bring_outputs() {
    if (!executor_->moves_data()) return {};
    for (int slot = 0; slot < slots_used(); ++slot) {
      const int lane = lane_of_slot_.empty() ? 0 : lane_of_slot_[static_cast<size_t>(slot)];
      const auto views = executor_->outputs(slot);
      for (size_t i = 0; i < views.size(); ++i) {
        const int owner = owner_of(problem_.graph->tensor(problem_.graph->outputs()[i]).producer, lane);
        HEDDLE_RETURN_IF_ERROR(
            group_.bring_bytes(owner, {views[i].data, static_cast<size_t>(views[i].bytes)}));
      }
    }
    return {};
  }

  // The rank that runs the op.
  int owner_of(OpId op, int lane) const {
    for (const Segment& segment : plan_.segments) {
      if (op.valid() && segment.lane == lane &&
          std::binary_search(segment.ops.begin(), segment.ops.end(), op))
        return options_.rank_of_device[segment.device.index()];
    }
    return 0;
  }

  // As verify_plan() in one process. Called by all ranks, rank 0 compares.
  Status verify() {
    std::optional<Samples> samples;
    Status status;
    if (first()) {
      for (const TensorId t : problem_.graph->outputs())
        record_.outputs_compared.push_back(problem_.graph->tensor(t).name);
      auto made = with_references(*model_, {inputs_});
      if (made.ok())
        samples = std::move(made).value();
      else
        status = made.error();
    }
    HEDDLE_RETURN_IF_ERROR(group_.agree(status));
    const Precision type = narrowest_type(problem_, plan_);
    if (type != Precision::kF32) {
      if (first()) status = measure_precision(type, *samples);
      HEDDLE_RETURN_IF_ERROR(group_.agree(status));
      HEDDLE_RETURN_IF_ERROR(run_in_float32());
    }
    for (int slot = 0; first() && status.ok() && slot < slots_used(); ++slot)
      status = check_outputs(executor_->outputs(slot), samples->expected.front(), record_.rtol, record_.atol,
                             record_);
    return group_.agree(status);
  }

  Status measure_precision(Precision type, const Samples& samples) {
    PrecisionError& error = record_.precision.emplace();
    error.type = type;
    error.roundings = roundings_per_layer(problem_, plan_);
    HEDDLE_ASSIGN_OR_RETURN(error.unsplit, unsplit_error(*model_, type, samples, options_.run.decisions));
    for (int slot = 0; slot < slots_used(); ++slot)
      add_samples(error.plan, output_error(*problem_.graph, executor_->outputs(slot),
                                           samples.expected.front(), options_.run.decisions));
    error.plan.samples = 1;  // it ran in every slot
    return {};
  }

  // Compiles the plan again with all devices in float32 and runs a request in every slot.
  Status run_in_float32() {
    executor_.reset();  // two copies of the parameters may not fit
    ExecutorOptions create = executor_options();
    create.open = open_in_float32;
    HEDDLE_ASSIGN_OR_RETURN(executor_, Executor::create(problem_, plan_, model_, create));
    HEDDLE_RETURN_IF_ERROR(spread_inputs());
    StreamOptions stream;
    stream.requests = executor_->slots();
    stream.done = [this](const RequestTiming& t) { lane_of_slot_[static_cast<size_t>(t.slot)] = t.lane; };
    lane_of_slot_.assign(static_cast<size_t>(executor_->slots()), 0);
    HEDDLE_RETURN_IF_ERROR(run_together(stream));
    return bring_outputs();
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
  std::vector<double> periods_;                 // [round] time per request
  std::vector<int> lane_of_slot_;
  int measured_rounds_ = 0;  // the same on all ranks
  bool stopped_ = false;     // within a request, after others were measured; on all ranks
};

}  // namespace

Result<RunRecord> run_plan_on_ranks(RankGroup& group, const Problem& problem, const Plan& plan,
                                    std::shared_ptr<const Model> model, const RankRunOptions& options) {
  if (options.run.repeats < 1 || options.run.warmups < 0 || options.run.in_flight < 1) {
    return invalid_input(
        "a run over several ranks needs at least 1 repeat, 0 warm-ups and 1 request in flight");
  }
  return RankRunner(group, problem, plan, std::move(model), options).run();
}

}  // namespace heddle
