#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/openvino/openvino_whole.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/sampling.h"
#include "inputs.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kWarmups = 3;

// One side of the comparison: runs `count` requests and says what one took.
using Contestant = std::function<Result<double>(int count)>;

class Comparing {
 public:
  Comparing(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
            const CompareOptions& options)
      : problem_(problem),
        plan_(plan),
        model_(std::move(model)),
        options_(options),
        throughput_(problem.objective == Objective::kThroughput) {}

  Result<Comparison> run() {
    HEDDLE_RETURN_IF_ERROR(prepare());
    const Contestant ours = [this](int count) {
      return throughput_ ? our_stream(count) : our_latency(count);
    };
    const Contestant theirs = [this](int count) {
      return throughput_ ? their_stream(count) : their_latency(count);
    };
    HEDDLE_ASSIGN_OR_RETURN(const int our_count, count_per_round(ours, executor_->slots()));
    HEDDLE_ASSIGN_OR_RETURN(const int their_count, count_per_round(theirs, whole_->requests()));
    std::vector<double> our_times, their_times, ratios;
    for (int round = 0; round < options_.rounds; ++round) {
      if (options_.deadline.should_stop() && round > 0) break;
      double a = 0, b = 0;
      // Which goes first alternates, so that a drift of the machine's speed favours neither.
      for (int turn = 0; turn < 2; ++turn) {
        const bool us = (turn + round) % 2 == 0;
        HEDDLE_ASSIGN_OR_RETURN((us ? a : b), us ? ours(our_count) : theirs(their_count));
      }
      our_times.push_back(a);
      their_times.push_back(b);
      ratios.push_back(a / b);
      if (options_.progress)
        options_.progress->report({.what = "comparing",
                                   .done = static_cast<double>(round + 1),
                                   .total = static_cast<double>(options_.rounds)});
    }
    return Comparison{.ours_us = median_us(our_times),
                      .openvino_us = median_us(their_times),
                      .ratio = median_us(ratios),
                      .ratio_low = quantile_us(ratios, 0.25),
                      .ratio_high = quantile_us(ratios, 0.75),
                      .rounds = static_cast<int>(ratios.size()),
                      .openvino_requests = whole_->requests()};
  }

 private:
  Status prepare() {
    HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*problem_.graph, options_.inputs));
    HEDDLE_ASSIGN_OR_RETURN(
        whole_,
        WholeModel::create(*model_, throughput_ ? WholeMode::kThroughput : WholeMode::kLatency, inputs));
    HEDDLE_ASSIGN_OR_RETURN(executor_, Executor::create(problem_, plan_, model_,
                                                        {.in_flight = throughput_ ? options_.in_flight : 1,
                                                         .spin_us = 2000,
                                                         .open = {},
                                                         .deadline = options_.deadline,
                                                         .progress = nullptr}));
    if (!executor_->moves_data())
      return Error(Code::kInvalidInput,
                   "only plans whose devices are all real can be compared with OpenVINO");
    give_inputs(*executor_, inputs);
    return {};
  }

  Result<int> count_per_round(const Contestant& contestant, int in_flight) const {
    const int least = throughput_ ? 4 * in_flight : 1;
    HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const double warm, contestant(kWarmups * in_flight));
    HEDDLE_ASSIGN_OR_RETURN(const double us, contestant(least));
    return std::max(least, static_cast<int>(std::ceil(options_.round_s * 1e6 / std::max(us, 1.0))));
  }

  Result<double> our_latency(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const int64_t start = now_ns();
      HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const auto timing, executor_->run(options_.deadline));
      times.push_back(static_cast<double>(now_ns() - start) / 1000);
    }
    return median_us(times);
  }

  Result<double> their_latency(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const int64_t start = now_ns();
      HEDDLE_RETURN_IF_ERROR(whole_->infer());
      times.push_back(static_cast<double>(now_ns() - start) / 1000);
    }
    return median_us(times);
  }

  Result<double> our_stream(int count) {
    const int64_t start = now_ns();
    HEDDLE_ASSIGN_OR_RETURN(
        [[maybe_unused]] const auto result,
        executor_->run_stream({.requests = count, .fill = {}, .done = {}, .deadline = options_.deadline}));
    return static_cast<double>(now_ns() - start) / 1000 / count;
  }

  Result<double> their_stream(int count) {
    const int64_t start = now_ns();
    HEDDLE_RETURN_IF_ERROR(whole_->infer_many(count));
    return static_cast<double>(now_ns() - start) / 1000 / count;
  }

  const Problem& problem_;
  const Plan& plan_;
  std::shared_ptr<const Model> model_;
  const CompareOptions& options_;
  const bool throughput_;
  std::unique_ptr<WholeModel> whole_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

Result<Comparison> compare_with_openvino(const Problem& problem, const Plan& plan,
                                         std::shared_ptr<const Model> model, const CompareOptions& options) {
  if (!model) return Error(Code::kInvalidInput, "a comparison with OpenVINO needs a real model");
  if (options.rounds < 1) return Error(Code::kInvalidInput, "a comparison needs at least one round");
  return Comparing(problem, plan, std::move(model), options).run();
}

}  // namespace heddle
