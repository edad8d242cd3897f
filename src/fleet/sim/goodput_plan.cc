#include "heddle/fleet/goodput_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "heddle/fleet/fleet_check.h"

namespace heddle {
namespace {

constexpr double kShares[] = {0, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5};
constexpr double kSteps[] = {-.1, -.05, .05, .1};  // of one model's share
constexpr double kFirstLook = .3;                  // part of the requests
constexpr double kBursts = 10, kMostRequests = 100'000;
constexpr size_t kLeft = 4;  // candidates after the first look
// The work of a search without a time limit, in simulated events: less than 2 s for 100 devices. A plan by tables
// counts as many as its time would allow, one by local search more.
constexpr uint64_t kMostWork = 8'000'000, kTablesWork = 25'000,
                   kSearchWork = 150'000;  // the latter two for each model
// A simulation ends early for a candidate that misses this part of what the best one serves of the same arrivals.
constexpr double kFirstLookFloor = .95, kFloor = .995;

struct Candidate {
  std::vector<double> share;  // [model] of its SLO
  FleetPlan plan;
  double per_s = 0;                        // least of the loads, 0 if given up
  std::vector<std::vector<double>> found;  // [load][seed] the same for each simulation
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

class Search {
 public:
  Search(const Fleet& fleet, const std::string& planner, const GoodputPlanOptions& options)
      : fleet_(fleet), planner_(planner), options_(options), loads_(options.loads) {
    if (loads_.empty()) loads_.push_back({.traffic = options.goodput.traffic});
  }

  Result<GoodputPlan> run() {
    const auto began = std::chrono::steady_clock::now();
    GoodputPlan result;
    std::vector<double> own;
    for (const FleetModel& m : fleet_.models) own.push_back(m.margin_us / m.slo_us);
    HEDDLE_ASSIGN_OR_RETURN(Candidate usual, make(own));
    // goodput() scales arrivals in time, bursts too: they have their length at rates like the answer's.
    for (const FleetModel& m : fleet_.models) rates_.push_back(m.weight * usual.plan.value);
    HEDDLE_RETURN_IF_ERROR(evaluate(usual, 1, options_.seeds, nullptr, 0));
    result.usual_per_s = usual.per_s;
    Candidate best = std::move(usual);
    HEDDLE_RETURN_IF_ERROR(common_shares(best));
    HEDDLE_RETURN_IF_ERROR(shares_of_models(best));
    result.plan = std::move(best.plan);
    result.per_s = best.per_s;
    result.tried = tried_;
    if (free_) {
      // Without a margin more pipelines are in time, so no plan with one has a greater rate.
      result.plan.bound = free_->bound;
      result.plan.proof = free_->proof;
      HEDDLE_RETURN_IF_ERROR(check_planned(with_margins_of(fleet_, result.plan), result.plan));
    }
    result.plan.planning_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
  }

 private:
  // Enough to see some bursts, or a whole period.
  double requests_for(const Traffic& traffic) const {
    double seconds = 0, rate = 0;
    if (traffic.kind == TrafficKind::kBursty) seconds = kBursts * traffic.burst_s / traffic.burst_share;
    if (traffic.kind == TrafficKind::kDiurnal) seconds = traffic.period_s;
    for (const double r : rates_) rate += r;
    return std::max(options_.goodput.requests, std::min(rate * seconds, kMostRequests));
  }

  // Time counts only if it was given, so that the same input otherwise has the same plan.
  bool stopped() const {
    const auto& deadline = options_.planning.deadline;
    return deadline.should_stop() || (std::isinf(deadline.seconds_left()) && work_ >= kMostWork);
  }

  Result<Candidate> make(std::vector<double> share) {
    Fleet with = fleet_;
    for (size_t m = 0; m < share.size(); ++m) with.models[m].margin_us = share[m] * fleet_.models[m].slo_us;
    HEDDLE_ASSIGN_OR_RETURN(FleetPlan plan, plan_fleet(with, planner_, options_.planning));
    for (size_t m = 0; m < share.size(); ++m) plan.models[m].margin_us = with.models[m].margin_us;
    if (std::ranges::all_of(share, [](double s) { return s == 0; })) free_ = plan;
    ++tried_;
    const auto classes =
        std::ranges::count_if(fleet_.classes, [](const DeviceClass& c) { return c.count > 0; });
    work_ += fleet_.models.size() * (classes <= 2 ? kTablesWork : kSearchWork);
    if (options_.planning.progress)
      options_.planning.progress->report(
          {.what = "planning for requests in time",
           .done = static_cast<double>(tried_),
           .total = static_cast<double>(std::size(kShares) + 1 + std::size(kSteps) * fleet_.models.size())});
    return Candidate{std::move(share), std::move(plan), 0};
  }

  // The same arrivals for every candidate. One that serves less than `floor` of what `beat` does is given up.
  Status evaluate(Candidate& candidate, double part, int seeds, const Candidate* beat, double floor) {
    HEDDLE_ASSIGN_OR_RETURN(const Deployment deployment, deploy(fleet_, candidate.plan));
    candidate.per_s = 0;
    candidate.found.clear();
    double least = 0;
    for (size_t l = 0; l < loads_.size(); ++l) {
      GoodputOptions o = options_.goodput;
      o.traffic = loads_[l].traffic;
      o.recorded = loads_[l].recorded;
      o.requests = requests_for(o.traffic) * part;
      auto& found = candidate.found.emplace_back();
      for (int s = 0; s < (o.recorded != nullptr ? 1 : seeds); ++s, ++o.seed) {
        if (beat != nullptr)
          o.at_least = floor * beat->per_s * beat->found[l][static_cast<size_t>(s)] / mean(beat->found[l]);
        HEDDLE_ASSIGN_OR_RETURN(const Goodput at, goodput(deployment, rates_, o));
        work_ += at.events;
        if (at.per_s == 0) return {};
        found.push_back(at.per_s);
      }
      least = l == 0 ? mean(found) : std::min(least, mean(found));
    }
    candidate.per_s = least;
    return {};
  }

  Status common_shares(Candidate& best) {
    std::vector<Candidate> all;
    for (const double share : kShares) {
      if (stopped()) break;
      auto candidate = make(std::vector<double>(fleet_.models.size(), share));
      if (!candidate.ok()) {
        // Larger margins leave even less; a cancellation leaves the best so far.
        if (candidate.error().code() == Code::kInfeasible || candidate.error().code() == Code::kCancelled)
          break;
        return std::move(candidate).error();
      }
      const auto first = std::ranges::max_element(all, {}, &Candidate::per_s);
      const Candidate* beat = first != all.end() && first->per_s > 0 ? &*first : nullptr;
      HEDDLE_RETURN_IF_ERROR(evaluate(*candidate, kFirstLook, 1, beat, kFirstLookFloor));
      all.push_back(std::move(*candidate));
    }
    std::erase_if(all, [](const Candidate& c) { return c.per_s == 0; });
    std::ranges::stable_sort(all, std::greater<>(), &Candidate::per_s);
    for (size_t i = 0; i < std::min(kLeft, all.size()) && !stopped(); ++i)
      HEDDLE_RETURN_IF_ERROR(take_if_better(std::move(all[i]), best));
    return {};
  }

  Status shares_of_models(Candidate& best) {
    for (size_t m = 0; m < fleet_.models.size() && fleet_.models.size() > 1; ++m) {
      const std::vector<double> from = best.share;
      for (const double step : kSteps) {
        if (stopped()) return {};
        auto share = from;
        share[m] += step;
        if (share[m] < 0 || share[m] > .9) continue;
        auto candidate = make(std::move(share));
        if (!candidate.ok() && candidate.error().code() == Code::kInfeasible) continue;
        if (!candidate.ok() && candidate.error().code() == Code::kCancelled) return {};
        if (!candidate.ok()) return std::move(candidate).error();
        HEDDLE_RETURN_IF_ERROR(take_if_better(std::move(*candidate), best));
      }
    }
    return {};
  }

  Status take_if_better(Candidate candidate, Candidate& best) {
    HEDDLE_RETURN_IF_ERROR(evaluate(candidate, 1, options_.seeds, best.per_s > 0 ? &best : nullptr, kFloor));
    if (candidate.per_s > best.per_s) best = std::move(candidate);
    return {};
  }

  const Fleet& fleet_;
  const std::string& planner_;
  const GoodputPlanOptions& options_;
  std::vector<GoodputLoad> loads_;
  std::vector<double> rates_;
  std::optional<FleetPlan> free_;  // the plan without margins
  int tried_ = 0;
  uint64_t work_ = 0;
};

}  // namespace

Result<GoodputPlan> plan_for_goodput(const Fleet& fleet, const std::string& planner,
                                     const GoodputPlanOptions& options) {
  if (options.planning.objective != FleetObjective::kMaxMin)
    return invalid_input("a plan for requests in time has the objective max-min");
  if (options.seeds < 1 || options.seeds > 1000)
    return invalid_input("a plan for requests in time needs 1 to 1000 seeds");
  for (const auto& load : options.loads)
    if (load.recorded != nullptr && load.recorded->empty())
      return invalid_input("recorded arrivals for a plan are empty");
  return Search(fleet, planner, options).run();
}

}  // namespace heddle
