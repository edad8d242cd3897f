// Replicate: data parallelism. Devices are split into groups, each group is a lane that serves whole requests
// (one device, or a pipeline over several), with shares inversely proportional to the lanes' periods. DiviML
// (section IV) splits a batch over devices in the same spirit, PPipe (ATC'25, section 5) pools such lanes.
//
// Minimises the period 1 / (sum over lanes of 1 / period of the lane). All partitions for up to kMostExact
// devices, then merging of groups while that helps; each group's lane by annealing on its loads. Exploits
// known times of the whole model, devices that share cores (each set of those that do not is tried) and
// memory limits. Ignores, while it chooses, links that lanes share; the evaluator counts them.
#include <algorithm>
#include <map>

#include "lists/construction.h"
#include "lists/whole_model.h"
#include "search/load_search.h"

namespace heddle {
namespace {

// 52 partitions of 5 devices; 203 of 6.
constexpr size_t kMostExact = 5;
// Beyond this number of devices only single devices and all together are lanes.
constexpr size_t kMostMerged = 24;
// Moves of the annealing of one lane, per op and in all.
constexpr uint64_t kMovesPerOp = 60, kMostMoves = 60000;
// Temperatures, as shares of the value.
constexpr double kLaneHot = 0.05, kLaneCold = 5e-4;

struct LaneChoice {
  Assignment assignment;
  double us = kImpossible;  // its period
};
using Group = std::vector<DeviceId>;

class Replicator {
 public:
  Replicator(const Problem& problem, const PlannerOptions& options, PlanStore& candidates)
      : problem_(problem), options_(options), candidates_(candidates) {}

  void run(const Group& devices) {
    std::vector<Group> singles;
    for (const DeviceId d : devices) singles.push_back({d});
    offer(singles);
    if (devices.size() <= kMostExact) {
      std::vector<Group> groups;
      partitions(devices, 0, groups);
    } else if (devices.size() <= kMostMerged) {
      merge(singles);
    }
    if (devices.size() > 1) offer({devices});
  }

 private:
  const LaneChoice& lane(const Group& devices) {
    const auto [it, fresh] = known_.try_emplace(devices);
    if (fresh) it->second = devices.size() == 1 ? on_one(devices[0]) : on_several(devices);
    return it->second;
  }

  LaneChoice on_one(DeviceId device) const {
    auto choices = whole_model_on(problem_, device);
    if (choices.empty() || !params_fit(device)) return {};
    return {std::move(choices[0]), whole_model_us(problem_, device)};
  }

  bool params_fit(DeviceId device) const {
    const int64_t limit = problem_.cluster->memory_pool_bytes(problem_.cluster->memory_pool(device));
    return limit <= 0 || problem_.graph->total_param_bytes() <= limit;
  }

  LaneChoice on_several(const Group& devices) const {
    const FlatProblem flat(problem_, devices);
    auto start = least_load_plan(flat, {}, options_.deadline);
    if (!start) return {};
    LoadSearch search(flat, std::move(*start), {}, options_.seed);
    search.run({std::min(kMostMoves, kMovesPerOp * flat.num_ops()), kLaneHot, kLaneCold}, options_.deadline);
    if (search.best_excess() > 0) return {};
    const FlatPlan plan{search.best().device, order_by_priority(flat, upward_ranks(flat))};
    return {to_assignment(flat, plan), search.best_us()};
  }

  double rate(const std::vector<Group>& groups) {
    double sum = 0;
    for (const Group& g : groups) {
      const double us = lane(g).us;
      if (us < kImpossible) sum += 1 / std::max(us, 1e-9);
    }
    return sum;
  }

  void offer(const std::vector<Group>& groups) {
    std::vector<Lane> lanes;
    const double sum = rate(groups);
    for (const Group& g : groups) {
      const LaneChoice& choice = lane(g);
      if (choice.us < kImpossible) lanes.push_back({choice.assignment, 1 / std::max(choice.us, 1e-9) / sum});
    }
    if (lanes.empty()) return;
    candidates_.offer(
        lanes, "replicate (" + std::to_string(lanes.size()) + (lanes.size() == 1 ? " lane)" : " lanes)"));
  }

  bool stopped() const {
    return options_.deadline.cancelled() || (options_.deadline.expired() && !candidates_.empty());
  }

  void partitions(const Group& devices, size_t next, std::vector<Group>& groups) {
    if (stopped()) return;
    if (next == devices.size()) {
      offer(groups);
      return;
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].push_back(devices[next]);
      partitions(devices, next + 1, groups);
      groups[g].pop_back();
    }
    groups.push_back({devices[next]});
    partitions(devices, next + 1, groups);
    groups.pop_back();
  }

  // Two groups become one while the sum of rates grows; when nothing runs yet, also for nothing.
  void merge(std::vector<Group> groups) {
    while (groups.size() > 1 && !stopped()) {
      const double before = rate(groups);
      double best_gain = before > 0 ? 1e-12 * before : -1;
      std::pair<size_t, size_t> best{0, 0};
      for (size_t a = 0; a < groups.size(); ++a) {
        for (size_t b = a + 1; b < groups.size() && !stopped(); ++b) {
          const double gain = rate({united(groups[a], groups[b])}) - rate({groups[a], groups[b]});
          if (gain > best_gain) best_gain = gain, best = {a, b};
        }
      }
      if (best.first == best.second) break;
      groups[best.first] = united(groups[best.first], groups[best.second]);
      groups.erase(groups.begin() + static_cast<long>(best.second));
      offer(groups);
    }
  }

  static Group united(Group a, const Group& b) {
    a.insert(a.end(), b.begin(), b.end());
    std::sort(a.begin(), a.end());
    return a;
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  PlanStore& candidates_;
  std::map<Group, LaneChoice> known_;
};

Result<PlannerOutput> plan_replicate(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  Replicator replicator(problem, options, candidates);
  const auto sets = configurations(problem);
  for (size_t s = 0; s < sets.size() && !options.deadline.cancelled(); ++s) {
    replicator.run(sets[s]);
    report_progress(options, "planner replicate", static_cast<double>(s + 1),
                    static_cast<double>(sets.size()));
    if (options.deadline.expired() && !candidates.empty()) {
      return candidates.output(StopReason::kTimeLimit, options.deadline);
    }
  }
  return candidates.output(StopReason::kFinished, options.deadline);
}

}  // namespace

PlannerEntry replicate_planner() {
  return {{.name = "replicate",
           .description = "lanes on disjoint groups of devices, each serving a share of the requests",
           .source = "DiviML, section IV; PPipe, section 5",
           .objectives = {Objective::kThroughput},
           .exploits = "known time of the whole model, unequal devices, memory limits",
           .ignores = "links that lanes share, while it chooses"},
          plan_replicate};
}

}  // namespace heddle
