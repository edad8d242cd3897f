#include <algorithm>
#include <cmath>
#include <set>

#include "core/param_use.h"
#include "lns_window.h"
#include "schedule_model.h"

namespace heddle {
namespace {

constexpr double kLoadTicks = 1 << 20;
constexpr int64_t kWeightOfLargest = 64;
constexpr uint32_t kStays = UINT32_MAX;

class LoadWindow {
 public:
  LoadWindow(const FlatProblem& flat, LoadModel& loads, const FlatPlan& plan, const Neighbourhood& area)
      : flat_(flat),
        loads_(loads),
        device_(plan.device),
        free_(area.free),
        k_(flat.num_devices()),
        tick_us_(std::max(loads.period_us(), 1e-9) / kLoadTicks),
        number_(flat.num_ops(), kStays),
        m_(free_.size(), k_, int64_t{1} << 60) {
    for (uint32_t f = 0; f < free_.size(); ++f) number_[free_[f]] = f;
    for (const uint32_t v : free_) loads_.put(v, -1);
    terms_.resize(loads_.loads().size());
    for (size_t r = 0; r < terms_.size(); ++r) terms_[r].add(length(loads_.loads()[r]));
    for (uint32_t f = 0; f < free_.size(); ++f) add_op(f);
    std::set<uint32_t> seen;
    for (const uint32_t v : free_) {
      for (const uint32_t t : flat_.outputs(v)) add_tensor(t);
      for (const uint32_t t : flat_.inputs(v)) {
        if (seen.insert(t).second && number_[flat_.producer(t)] == kStays) add_tensor(t);
      }
    }
    for (const uint32_t v : free_) loads_.put(v, static_cast<int32_t>(device_[v]));
    add_loads();
    add_memory();
  }

  const CpModel& cp() const { return m_.cp; }

  FlatPlan decode(FlatPlan plan, const std::vector<double>& values) const {
    for (size_t f = 0; f < free_.size(); ++f) plan.device[free_[f]] = m_.device(f, values);
    return plan;
  }

 private:
  int64_t length(double us) const {
    return static_cast<int64_t>(std::llround(std::clamp(us / tick_us_, 0.0, 1e6 * kLoadTicks)));
  }

  void add_op(uint32_t f) {
    const uint32_t v = free_[f];
    for (uint32_t i = 0; i < k_; ++i) {
      if (!loads_.possible(v, i)) continue;
      const CpLit x = m_.may_run(f, i, device_[v] == i);
      terms_[i].add(x, length(flat_.us(v, i)));
      for (const uint32_t g : loads_.groups_of(i)) terms_[loads_.of_group(g)].add(x, length(flat_.us(v, i)));
    }
    m_.choose_device(f);
  }

  void add_tensor(uint32_t t) {
    const uint32_t u = flat_.producer(t), source = number_[u];
    for (uint32_t j = 0; j < k_; ++j) {
      bool stays = false, now = false;
      std::vector<CpLit> readers;
      for (const uint32_t w : flat_.readers(t)) {
        const uint32_t reader = number_[w];
        if (reader == kStays) {
          stays = stays || device_[w] == j;
        } else if (m_.possible(reader, j)) {
          readers.push_back(m_.on(reader, j));
          now = now || device_[w] == j;
        }
      }
      if (readers.empty() && !stays) continue;
      for (uint32_t i = 0; i < k_; ++i) {
        if (i == j) continue;
        if (source == kStays) {
          if (device_[u] == i && !stays) add_way(t, i, j, m_.always(), readers, false, now);
        } else if (m_.possible(source, i)) {
          add_way(t, i, j, m_.on(source, i), readers, stays, device_[u] == i && now);
        }
      }
    }
  }

  // `stays`: something that stays reads the tensor on j; `now`: the tensor moves so in the plan as it is.
  void add_way(uint32_t t, uint32_t i, uint32_t j, CpLit source, const std::vector<CpLit>& readers,
               bool stays, bool now) {
    const auto& way = flat_.way(i, j);
    if (way.passage == Passage::kNone) {
      for (const CpLit reader : readers) m_.forbid(m_.all({source, reader}));
      return;
    }
    const int64_t time =
        way.passage == Passage::kFree || way.resources.empty() ? 0 : length(way.time_us(flat_.bytes(t)));
    if (time == 0) return;
    CpLit moves = source;
    if (!stays) {
      moves = m_.cp.add_literal();
      m_.hint(moves, now);
      for (const CpLit reader : readers) m_.implies(m_.all({source, reader}), moves);
    }
    for (const uint32_t r : way.resources) terms_[loads_.of_resource(r)].add(moves, time);
  }

  void add_loads() {
    const CpVar largest = m_.cp.add_integer(0, static_cast<int64_t>(4 * kLoadTicks));
    CpExpr sum;
    sum.add(largest, kWeightOfLargest);
    for (const CpExpr& load : terms_) {
      if (load.terms.empty() && load.constant == 0) continue;
      m_.after(largest, load, 0);
      for (const CpTerm& term : load.terms) sum.add(term.var, term.coefficient);
    }
    m_.cp.minimise(std::move(sum));
  }

  void add_memory() {
    ParamRoom room(flat_);
    for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
      if (number_[v] == kStays) room.add(v, device_[v]);
    }
    m_.limit_params(flat_, room, free_, device_);
  }

  const FlatProblem& flat_;
  LoadModel& loads_;
  const std::vector<uint32_t>& device_;
  const std::vector<uint32_t>& free_;
  const size_t k_;
  const double tick_us_;
  std::vector<uint32_t> number_;  // per op: its number among the free ones, or kStays
  ScheduleModel m_;
  std::vector<CpExpr> terms_;  // per load
};

}  // namespace

Result<WindowAnswer> solve_loads(const FlatProblem& flat, LoadModel& loads, const FlatPlan& plan,
                                 const Neighbourhood& area, const SolveOptions& options) {
  const LoadWindow window(flat, loads, plan, area);
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(window.cp(), options));
  WindowAnswer answer;
  answer.complete = solution.status == SolveStatus::kOptimal;
  if (!solution.has_values()) return answer;
  answer.plan = window.decode(plan, solution.values);
  answer.changed = answer.plan.device != plan.device;
  return answer;
}

}  // namespace heddle
