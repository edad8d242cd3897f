#include "portfolio.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "heddle/base/log.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/units.h"
#include "lists/construction.h"

namespace heddle {

namespace {

constexpr std::chrono::milliseconds kPoll{10}, kReport{100};

double seconds_of(const TimeShare& time, double all, double left) {
  return std::min(time.most_s, time.share * (time.of_all ? all : left));
}

}  // namespace

std::string standing_text(const PlanStore& store) {
  const double bound = store.bound().us;
  return (store.empty() ? "; no plan yet"
                        : "; best " + format_us(store.value_us()) + " by " + store.winner()) +
         (bound > 0 ? ", bound " + format_us(bound) : "");
}

std::function<bool()> until_there_is_a_plan(const PlanStore& store, const Deadline& deadline) {
  return [&store, deadline] {
    return !deadline.cancelled() && (store.empty() || (!deadline.expired() && store.is_open()));
  };
}

void run_steps(const PortfolioSteps& steps, const PortfolioRules& rules) {
  const double all = rules.deadline.seconds_left();
  for (size_t i = 0; i < steps.size(); ++i) {
    const PortfolioStep& step = steps[i];
    if (rules.open ? !rules.open() : rules.deadline.should_stop()) return;
    if (step.when && !step.when()) continue;
    const double seconds = seconds_of(step.time, all, rules.deadline.seconds_left());
    if (seconds < step.time.least_s) continue;
    const Stopwatch watch;
    step.run(rules.deadline.sooner(seconds));
    log_debug([&] {
      return fmt::format("step {} took {}{}", step.name, format_us(1e6 * watch.seconds()),
                         rules.standing ? rules.standing() : "");
    });
    if (rules.report) rules.report(step.name, i + 1);
  }
}

void run_side_by_side(const std::vector<PortfolioSteps>& tables, const PortfolioRules& rules) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < tables.size(); ++i) threads.emplace_back([&, i] { run_steps(tables[i], rules); });
  run_steps(tables[0], rules);
  for (std::thread& thread : threads) thread.join();
}

void run_watched(const Deadline& deadline, const CancelToken& closed, const std::function<void()>& report,
                 const std::function<void(const Deadline&)>& work) {
  const Deadline inner = Deadline::after_seconds(deadline.seconds_left(), closed);
  std::future<void> done = std::async(std::launch::async, work, inner);
  auto last = std::chrono::steady_clock::now();
  while (done.wait_for(kPoll) != std::future_status::ready) {
    if (deadline.cancelled()) closed.cancel();
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kReport) continue;
    last = now;
    report();
  }
  done.get();
}

std::vector<Plan> run_planners(const Problem& problem, const PlannerOptions& options,
                               std::span<const std::string_view> names, PlanStore& candidates) {
  std::vector<Plan> plans;
  PlannerOptions quiet = options;
  quiet.progress = nullptr;
  quiet.start = nullptr;
  quiet.settings.clear();
  PortfolioSteps steps;
  for (const std::string_view name : names) {
    const PlannerEntry* entry = find_planner(name);
    const auto plan = [&, entry](const Deadline&) {
      auto out = entry->plan(problem, quiet);
      if (!out.ok()) return;
      candidates.offer(out->plan, entry->info.name);
      plans.push_back(std::move(out->plan));
    };
    steps.push_back(
        {.name = std::string(name), .when = [&, entry] { return entry->supports(problem); }, .run = plan});
  }
  const auto report = [&](const std::string& step, size_t done) {
    report_progress(options, "planner " + step, static_cast<double>(done), static_cast<double>(names.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
  };
  run_steps(steps, {.deadline = options.deadline,
                    .open = until_there_is_a_plan(candidates, options.deadline),
                    .report = report,
                    .standing = [&candidates] { return standing_text(candidates); }});
  return plans;
}

std::span<const std::string_view> constructive_planners(Objective objective) {
  static constexpr std::array<std::string_view, 9> kLatency{
      "single", "heft", "heft-links", "lookahead", "greedy", "critical-path", "met", "m-sct", "getf"};
  static constexpr std::array<std::string_view, 4> kThroughput{"single", "greedy", "met", "pipeline"};
  if (objective == Objective::kThroughput) return kThroughput;
  return kLatency;
}

std::vector<Plan> starting_plans(const Problem& problem, const PlannerOptions& options,
                                 PlanStore& candidates) {
  if (options.start == nullptr)
    return run_planners(problem, options, constructive_planners(problem.objective), candidates);
  candidates.offer(*options.start, "the plan to improve");
  return {*options.start};
}

Result<PlannerOutput> plan_from_starts(
    const Problem& problem, const PlannerOptions& options,
    const std::function<Result<PlannerOutput>(std::vector<Plan> starts, PlanStore& candidates)>& improve) {
  PlanStore candidates(problem);
  auto starts = starting_plans(problem, options, candidates);
  if (options.deadline.cancelled() && candidates.empty())
    return candidates.output(StopReason::kCancelled, options.deadline);
  return improve(std::move(starts), candidates);
}

}  // namespace heddle
