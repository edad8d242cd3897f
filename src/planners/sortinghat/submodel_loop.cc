#include "submodel_loop.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/portfolio.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"
#include "lists/construction.h"
#include "slot_model.h"
#include "slot_search.h"

namespace heddle {
namespace {

// Beyond this a program takes longer to set up than it can give.
constexpr size_t kMostRows = 250'000;
// Less is not worth setting a program up for.
constexpr double kLeastSeconds = 0.02;

// Solvers may answer late: kept free of the time, at most a tenth of it.
constexpr double kAnswerSeconds = 0.5;
// Without a deadline a submodel's program ends after so much work, counted by the solver, so that the plan is
// the same on every run.
constexpr double kSubmodelWork = 5;

class Loop {
 public:
  Loop(const ColdTables& tables, const Submodels& submodels, const LoopOptions& loop,
       const PlannerOptions& options, const std::string& name)
      : t_(tables),
        flat_(tables.flat()),
        submodels_(submodels),
        loop_(loop),
        options_(options),
        name_(name),
        state_(first_state(tables)),
        d_(flat_.num_ops()),
        in_place_(flat_.num_ops(), 0),
        segment_(flat_.num_ops(), 0),
        load_rank_(flat_.num_ops(), 0) {}

  Result<LoopResult> run() {
    for (int s = 0; s < submodels_.count; ++s) {
      if (options_.deadline.cancelled()) return std::move(result_);
      report(s);
      const SlotProblem problem = slot_problem(t_, submodels_, s, state_, loop_.slots);
      const Deadline mine = share(submodels_.count - s);
      auto slots = search_slots(problem, options_.seed + static_cast<uint64_t>(s), loop_.rounds, mine);
      result_.cut_short = result_.cut_short || mine.should_stop();
      if (!slots) return std::move(result_);
      if (loop_.solver != SlotSolver::kNone) HEDDLE_RETURN_IF_ERROR(solve(problem, s, mine, *slots));
      inherit(problem, *slots, s);
    }
    report(submodels_.count);
    result_.placed = true;
    result_.counters["submodels"] = submodels_.count;
    return std::move(result_);
  }

  void offer(PlanStore& candidates) {
    order_loads();
    if (!loop_.whole_subgraphs) {
      ColdTimer timer(t_);
      if (timer.time(d_) < kImpossible) candidates.offer(timer.plan(d_), name_ + ", op by op");
    }
    candidates.offer(subgraphs(), name_ + ", subgraphs");
  }

 private:
  Deadline share(int submodels_left) const {
    const double whole = options_.deadline.seconds_left();
    if (!(whole < kImpossible)) return options_.deadline;
    const double left = std::max(0.0, whole - std::min(kAnswerSeconds, 0.1 * whole));
    return options_.deadline.sooner(std::min(kSubmodelSeconds, left / submodels_left));
  }

  void report(int done) const { report_progress(options_, "planner " + name_, done, submodels_.count); }

  Status solve(const SlotProblem& problem, int s, const Deadline& deadline, Slots& slots) {
    SlotTimer timer(problem);
    const SlotCost before = slot_cost(timer, slots);
    if (deadline.seconds_left() < kLeastSeconds) return late();
    if (before.excess > 0) return skipped();
    if (SlotModel::count_rows(problem) > kMostRows) return skipped();
    const SlotModel model(problem, slots);
    double& rows = result_.counters["rows_most"];
    rows = std::max(rows, static_cast<double>(model.milp().rows().size() + model.milp().indicators().size()));
    if (deadline.seconds_left() < kLeastSeconds) return late();
    SolveOptions o;
    o.deadline = deadline;
    o.seed = options_.seed;
    o.threads = options_.threads;
    o.on_progress = [this, s](const SolveProgress&) { report(s); };
    if (deadline.seconds_left() == kImpossible) o.work = kSubmodelWork;
    HEDDLE_ASSIGN_OR_RETURN(const Solution solution, loop_.solver == SlotSolver::kCpSat
                                                         ? heddle::solve(model.cp(), o)
                                                         : heddle::solve(model.milp(), o));
    const bool optimal = solution.status == SolveStatus::kOptimal;
    ++result_.counters["programs"];
    result_.counters["programs_optimal"] += optimal ? 1 : 0;
    // Its time was over, or it saw the end of it coming.
    result_.cut_short = result_.cut_short || (!optimal && o.work == kImpossible);
    if (!solution.has_values()) return {};
    const Slots found = model.slots(solution.values);
    if (!(slot_cost(timer, found) < before)) return {};
    ++result_.counters["programs_better"];
    slots = found;
    return {};
  }

  Status late() {
    result_.cut_short = true;
    return skipped();
  }

  Status skipped() {
    ++result_.counters["programs_skipped"];
    return {};
  }

  // PrevM, PrevDTFin, PrevSGFin and FixedNodes for the next submodel. Of memory only parameters stay: tensors
  // of a submodel are read in it or in the next.
  void inherit(const SlotProblem& p, const Slots& slots, int s) {
    SlotTimer timer(p);
    timer.time(slots);
    result_.program_us = timer.total_us();
    if (!loop_.slots.independent) {
      for (size_t i = 0; i < p.k; ++i) state_.device_free[i] = timer.finish()[(i + 1) * p.q];
      for (size_t b = 0; b < p.load_order.size(); ++b)
        state_.bus_free[b] = timer.load_finish()[p.load_order[b].back()];
    }
    std::vector<uint32_t> turn(p.num_slots(), 0);  // of a slot's copies
    for (const auto& order : p.load_order) {
      for (size_t at = 0; at < order.size(); ++at) turn[order[at]] = static_cast<uint32_t>(at);
    }
    for (size_t w = p.num_ops; w < p.num_nodes(); ++w) {
      if (slots[w] == 0) continue;
      const size_t i = p.device_of(slots[w]), pool = flat_.pool(i);
      uint8_t& there = state_.there[pool * flat_.num_params() + p.param[w - p.num_ops]];
      if (there == 0) state_.used[i] = plus_bytes(state_.used[i], p.bytes[w]);
      there = 1;
    }
    std::vector<std::vector<uint32_t>> params(p.num_ops);
    for (const auto& [u, v] : p.edges) {
      if (u >= p.num_ops) params[v].push_back(u);
    }
    std::vector<uint32_t> place(p.num_slots(), 0);
    const auto sequence = timer.sequence();
    for (size_t at = 0; at < sequence.size(); ++at) place[sequence[at]] = static_cast<uint32_t>(at);
    std::vector<uint32_t> own;
    for (uint32_t v = 0; v < p.num_ops; ++v) {
      if (p.placeholder[v] == 0) own.push_back(v);
    }
    std::stable_sort(own.begin(), own.end(),
                     [&](uint32_t a, uint32_t b) { return place[slots[a]] < place[slots[b]]; });
    for (const uint32_t v : own) decide(p, slots, params[v], v, s, turn);
  }

  void decide(const SlotProblem& p, const Slots& slots, const std::vector<uint32_t>& params, uint32_t v,
              int s, const std::vector<uint32_t>& turn) {
    const uint32_t op = p.op[v];
    const size_t i = p.device_of(slots[v]);
    state_.device[op] = static_cast<int32_t>(i);
    d_.device[op] = static_cast<uint8_t>(i);
    d_.order.push_back(op);
    segment_[op] = static_cast<int>(static_cast<size_t>(s) * p.num_slots() + slots[v]);
    load_rank_[op] = (static_cast<uint64_t>(s) << 32) + turn[slots[v]];
    const bool in_place = SlotProblem::in_place(slots[v]) && !loop_.slots.independent && flat_.needs_load(i);
    in_place_[op] = in_place;
    if (in_place && t_.has_params(op)) {
      d_.way[op] = kInPlace;
      return;
    }
    // The op's parameters come over the bus that brings most of them.
    std::map<size_t, int64_t> over;
    for (const uint32_t w : params) {
      if (slots[w] > 0) over[p.device_of(slots[w])] += p.bytes[w];
    }
    const auto most = std::max_element(over.begin(), over.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == over.end() || p.bus[most->first] == p.bus[i]) return;
    const auto& ways = t_.ways(i);
    for (size_t w = 1; w < ways.size(); ++w) {
      if (p.bus[static_cast<size_t>(ways[w].helper)] == p.bus[most->first])
        d_.way[op] = static_cast<uint8_t>(w);
    }
    for (const uint32_t w : params) {
      if (slots[w] > 0 && p.device_of(slots[w]) == most->first)
        load_rank_[op] = (static_cast<uint64_t>(s) << 32) + turn[slots[w]];
    }
  }

  // Leads that make the loads' order that of the programs, in which devices take turns.
  void order_loads() {
    const size_t n = d_.order.size();
    std::vector<uint32_t> place(n);
    std::vector<uint32_t> loads;
    for (uint32_t i = 0; i < n; ++i) {
      place[d_.order[i]] = i;
      if (d_.way[d_.order[i]] != kInPlace && t_.has_params(d_.order[i])) loads.push_back(d_.order[i]);
    }
    std::stable_sort(loads.begin(), loads.end(),
                     [&](uint32_t a, uint32_t b) { return load_rank_[a] < load_rank_[b]; });
    uint32_t next_at = UINT32_MAX, next_place = UINT32_MAX;
    for (size_t i = loads.size(); i-- > 0;) {
      const uint32_t v = loads[i];
      // At one place loads come in the order of their runs.
      const uint32_t latest = place[v] < next_place ? next_at : (next_at > 0 ? next_at - 1 : 0);
      next_at = std::min(place[v], latest);
      next_place = place[v];
      d_.lead[v] = place[v] - next_at;
    }
  }

  Assignment subgraphs() const {
    Assignment a;
    for (const uint8_t i : d_.device) a.device.push_back(flat_.device(i));
    for (const uint32_t v : d_.order) a.order.emplace_back(size_t{v});
    a.segment = segment_;
    a.host_access.assign(in_place_.begin(), in_place_.end());
    a.load_route.assign(flat_.num_ops(), -1);
    std::map<int, std::set<uint8_t>> ways;  // of a segment's loads
    for (size_t v = 0; v < flat_.num_ops(); ++v) {
      if (t_.has_params(v)) ways[segment_[v]].insert(d_.way[v]);
    }
    std::map<int, int32_t> route;
    for (size_t v = 0; v < flat_.num_ops(); ++v) {
      const auto& own = ways[segment_[v]];
      if (own.size() != 1 || *own.begin() == 0 || *own.begin() == kInPlace) continue;
      if (route.count(segment_[v]) == 0) {
        route[segment_[v]] = static_cast<int32_t>(a.routes.size());
        a.routes.push_back(t_.ways(d_.device[v])[*own.begin()].hops);
      }
      a.load_route[v] = route[segment_[v]];
    }
    return a;
  }

  const ColdTables& t_;
  const FlatProblem& flat_;
  const Submodels& submodels_;
  const LoopOptions& loop_;
  const PlannerOptions& options_;
  const std::string& name_;
  SlotState state_;
  ColdDecisions d_;
  std::vector<uint8_t> in_place_;
  std::vector<int> segment_;
  std::vector<uint64_t> load_rank_;  // submodel, turn of the slot
  LoopResult result_;
};

}  // namespace

Status check_slots(size_t devices, int q, const std::string& planner) {
  constexpr size_t kMostSlots = 512;
  if (q < 2) return invalid_input(planner + ": q is " + std::to_string(q) + ", expected at least 2");
  if (devices * static_cast<size_t>(q) > kMostSlots) {
    return unsupported(planner + " plans for at most " + std::to_string(kMostSlots) +
                       " subgraphs in a submodel, not " + std::to_string(devices) + " devices with " +
                       std::to_string(q) + " each: choose fewer devices, or a smaller q");
  }
  return {};
}

Result<LoopResult> run_submodels(const ColdTables& tables, const Submodels& submodels,
                                 const LoopOptions& loop, const PlannerOptions& options,
                                 const std::string& name, PlanStore& candidates) {
  Loop run(tables, submodels, loop, options, name);
  HEDDLE_ASSIGN_OR_RETURN(auto result, run.run());
  if (result.placed) run.offer(candidates);
  return result;
}

Result<PlannerOutput> submodels_output(const Problem& problem, const PlannerOptions& options,
                                       const LoopResult& result, PlanStore& candidates) {
  static constexpr std::array<std::string_view, 2> kOthers{"cold-single", "heft"};
  if (candidates.empty()) run_planners(problem, options, kOthers, candidates);
  const bool stopped = result.cut_short || options.deadline.should_stop();
  const auto stop = stopped ? StopReason::kTimeLimit : StopReason::kFinished;
  HEDDLE_ASSIGN_OR_RETURN(auto out, candidates.output(stop, options.deadline));
  for (const auto& [name, value] : result.counters) out.counters[name] = value;
  return out;
}

}  // namespace heddle
