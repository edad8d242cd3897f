// A module by simulated annealing over devices and order: what the solvers start from. A good start is worth
// more to them than time: it cuts the search and shortens the horizon of their big constants.
#include <utility>

#include "module_schedule.h"
#include "search/anneal.h"

namespace heddle {
namespace {

// Temperatures as shares of the start's value.
constexpr double kHot = 0.01, kCold = 5e-5;
// So often a move begins at a task that the end waits for: elsewhere it mostly changes nothing.
constexpr double kAtCritical = 0.6;
// Kinds of moves, equally likely: another place in the order, one request of a task, all of them, all of a
// task and of one that reads it, one request along with another one for some tasks.
enum : uint64_t { kOrderKinds = 4, kOne = kOrderKinds, kOneToo, kAll, kRun, kFollow, kKinds };
constexpr size_t kLongestRun = 16;

class ModuleSearch : public AnnealSearch {
 public:
  ModuleSearch(const ModuleProblem& m, const ModuleAnswer& start, uint64_t seed)
      : m_(m),
        start_(start),
        requests_(m.model.num_requests()),
        random_(seed),
        schedule_(m, start.batches),
        now_(schedule_.kept_value()),
        best_(now_),
        best_found_(schedule_.snapshot()) {}

  ModuleAnswer run(size_t moves_per_gene, const Deadline& deadline) {
    anneal(*this,
           {.hot = kHot * now_,
            .cold = kCold * now_,
            .moves = moves_per_gene * m_.model.num_tasks() * requests_,
            .follows_deadline = true},
           deadline, random_);
    schedule_.restore(std::move(best_found_));
    ModuleAnswer answer = start_;
    auto batches = schedule_.decisions();
    const double found = module_value(m_, batches);
    if (found < answer.value_us) answer.value_us = found, answer.batches = std::move(batches);
    return answer;
  }

  // For anneal().
  void look(double /*share*/, double /*temperature*/) { critical_ = schedule_.critical(); }
  bool propose() {
    schedule_.begin_move();
    const bool critical = !critical_.empty() && random_.chance(kAtCritical);
    const auto p = critical ? critical_[random_.below(critical_.size())]
                            : static_cast<uint32_t>(random_.below(m_.model.num_tasks()));
    const uint64_t kind = random_.below(kKinds);
    return kind < kOrderKinds ? propose_place(p) : propose_devices(p, kind);
  }
  double rise(Metropolis& rule) {
    next_ = schedule_.value(now_ + rule.most());
    return next_ - now_;
  }
  void keep() {
    schedule_.keep();
    now_ = next_;
    if (now_ >= best_) return;
    best_ = now_;
    best_found_ = schedule_.snapshot();
  }
  void undo() { schedule_.undo(); }

 private:
  bool propose_place(uint32_t p) {
    const auto [first, last] = schedule_.free_places(p);
    if (first >= last) return false;
    const auto to = static_cast<uint32_t>(random_.between(first, last));
    if (to == schedule_.place(p)) return false;
    schedule_.move_place(p, to);
    return true;
  }

  // A fixed task has all its requests on one device, which ModuleProblem::possible() sees to.
  bool propose_devices(uint32_t p, uint64_t kind) {
    const size_t l = random_.below(requests_);
    if (requests_ > 1 && kind == kFollow) {
      follow(p, l);
      return schedule_.changed();
    }
    const auto d = static_cast<uint32_t>(random_.below(m_.model.num_devices()));
    if (!m_.possible(p, d)) return false;
    if (kind == kAll || kind == kRun)
      set_all(p, d);
    else
      schedule_.set_device(p, l, d);
    if (kind == kRun) {
      for (const TaskModel::Edge& e : m_.model.out(p)) {
        if (!m_.possible(e.dst, d)) continue;
        set_all(e.dst, d);
        break;
      }
    }
    return schedule_.changed();
  }

  void set_all(uint32_t p, uint32_t d) {
    for (size_t r = 0; r < requests_; ++r) schedule_.set_device(p, r, d);
  }

  // Request l goes with another one from task p on, for some tasks.
  void follow(uint32_t p, size_t l) {
    const size_t leader = random_.below(requests_), n = schedule_.order().size();
    const size_t end = std::min<size_t>(n, schedule_.place(p) + 1 + random_.below(kLongestRun));
    for (size_t i = schedule_.place(p); i < end; ++i) {
      const uint32_t q = schedule_.order()[i];
      schedule_.set_device(q, l, schedule_.device(q, leader));
    }
  }

  const ModuleProblem& m_;
  const ModuleAnswer& start_;
  const size_t requests_;
  Random random_;
  ModuleSchedule schedule_;
  double now_, best_, next_ = 0;
  ModuleSchedule::Snapshot best_found_;
  std::vector<uint32_t> critical_;  // at the last look
};

}  // namespace

ModuleAnswer module_start(const ModuleProblem& m, const ModuleAnswer& start, const SolveOptions& limits,
                          double share, size_t moves_per_gene) {
  ModuleAnswer answer = module_by_list(m);
  if (start.value_us < answer.value_us) answer = start;
  answer.bound_us = module_bound(m);
  answer.optimal = answer.value_us < kImpossible && answer.value_us <= answer.bound_us * (1 + 1e-12);
  if (!(answer.value_us < kImpossible) || answer.optimal || m.model.num_tasks() == 0) return answer;
  if (limits.deadline.should_stop()) return answer;
  const Deadline deadline = limits.deadline.sooner(share * limits.deadline.seconds_left());
  ModuleAnswer found = ModuleSearch(m, answer, limits.seed).run(moves_per_gene, deadline);
  found.optimal = found.value_us <= found.bound_us * (1 + 1e-12);
  return found;
}

}  // namespace heddle
