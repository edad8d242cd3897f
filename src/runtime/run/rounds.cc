#include "rounds.h"

#include <algorithm>
#include <cmath>

#include "inputs.h"

namespace heddle {

Result<std::unique_ptr<Executor>> open_for_rounds(const Problem& problem, const Plan& plan,
                                                  std::shared_ptr<const Model> model,
                                                  const RoundOptions& options,
                                                  std::span<const TensorValue> inputs) {
  if (!model)
    return invalid_input("timing a plan in turns needs a real model; this plan's graph has none behind it");
  if (options.rounds < 1)
    return invalid_input("timing in turns needs at least one round, not " + std::to_string(options.rounds));
  ExecutorOptions create;
  create.in_flight = problem.objective == Objective::kThroughput ? options.in_flight : 1;
  create.deadline = options.deadline;
  HEDDLE_ASSIGN_OR_RETURN(auto executor, Executor::create(problem, plan, std::move(model), create));
  if (!executor->moves_data())
    return invalid_input(
        "emulated devices take the plan's own times: give a cluster whose devices are all real");
  give_inputs(*executor, inputs);
  return executor;
}

Result<int> requests_per_round(const TimeRequests& time, int in_flight, int least,
                               const RoundOptions& options) {
  constexpr int kWarmups = 3;
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const double warm, time(kWarmups * in_flight));
  HEDDLE_ASSIGN_OR_RETURN(const double us, time(least));
  return std::max(least, static_cast<int>(std::ceil(options.round_s * 1e6 / std::max(us, 1.0))));
}

Result<RoundTimes> time_in_turns(std::span<const std::function<Result<double>()>> sides,
                                 const RoundOptions& options, const char* what) {
  RoundTimes times(sides.size());
  for (int round = 0; round < options.rounds; ++round) {
    if (options.deadline.should_stop() && round > 0) break;
    // Forwards, then backwards, from each side in turn, so that all come as often after each other one: threads of the
    // side before may still spin while they wait for work.
    const size_t first = static_cast<size_t>(round / 2) % sides.size();
    for (size_t turn = 0; turn < sides.size(); ++turn) {
      const size_t step = round % 2 == 0 || turn == 0 ? turn : sides.size() - turn;
      const size_t side = (first + step) % sides.size();
      const auto us = sides[side]();
      if (!us.ok()) {
        if (us.error().code() != Code::kCancelled || round == 0) return us.error();
        for (auto& of_side : times) of_side.resize(static_cast<size_t>(round));
        return times;
      }
      times[side].push_back(*us);
    }
    if (options.progress)
      options.progress->report({.what = what,
                                .done = static_cast<double>(round + 1),
                                .total = static_cast<double>(options.rounds)});
  }
  return times;
}

}  // namespace heddle
