#include "split_bound.h"

#include <algorithm>
#include <map>

namespace heddle {
namespace {

// Without a deadline: for one part.
constexpr double kPartSeconds = 10;

class Recursion {
 public:
  Recursion(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
            const SolveOptions& limits)
      : model_(model),
        modules_(modules),
        solver_(solver),
        limits_(limits),
        module_of_(model.num_tasks(), 0),
        after_(model.num_tasks(), 0),
        before_(model.num_tasks(), 0) {
    for (uint32_t m = 0; m < modules.tasks.size(); ++m) {
      for (const uint32_t t : modules.tasks[m]) module_of_[t] = m;
    }
    left_ = modules.tasks.size();
    for (uint32_t t = 0; t < model.num_tasks(); ++t) left_ += has_outer(t, true) + has_outer(t, false);
  }

  Result<SplitBound> run() {
    const size_t q = modules_.tasks.size();
    for (size_t m = q; m-- > 0;) HEDDLE_RETURN_IF_ERROR(recur(m, /*forward=*/true));
    for (size_t m = 0; m < q; ++m) HEDDLE_RETURN_IF_ERROR(recur(m, /*forward=*/false));
    double bound = 0;
    for (size_t m = 0; m < q; ++m) {
      const auto& tasks = modules_.tasks[m];
      HEDDLE_ASSIGN_OR_RETURN(const double own, opt(tasks));
      bound = std::max(bound, least_beyond(tasks, false) + own + least_beyond(tasks, true));
    }
    return SplitBound{bound, claimed_by_};
  }

 private:
  std::span<const TaskModel::Edge> edges(uint32_t t, bool forward) const {
    return forward ? model_.out(t) : model_.in(t);
  }
  static uint32_t other(const TaskModel::Edge& e, bool forward) { return forward ? e.dst : e.src; }

  // Does the task read from an earlier module (forward recursion), or is it read by a later one (backward)?
  bool has_outer(uint32_t t, bool forward) const {
    for (const TaskModel::Edge& e : edges(t, !forward)) {
      if (module_of_[other(e, !forward)] != module_of_[t]) return true;
    }
    return false;
  }

  // F (forward) or B of all tasks of a module where another module's edge ends.
  Status recur(size_t m, bool forward) {
    for (const uint32_t r : modules_.tasks[m]) {
      if (!has_outer(r, forward)) continue;
      std::vector<uint8_t> in(model_.num_tasks(), 0);
      in[r] = 1;
      std::vector<uint32_t> part;
      const auto& tasks = modules_.tasks[m];
      for (size_t i = 0; i < tasks.size(); ++i) {
        const uint32_t t = forward ? tasks[i] : tasks[tasks.size() - 1 - i];
        if (!in[t]) continue;
        part.push_back(t);
        for (const TaskModel::Edge& e : edges(t, forward)) {
          if (module_of_[other(e, forward)] == m) in[other(e, forward)] = 1;
        }
      }
      if (!forward) std::reverse(part.begin(), part.end());
      HEDDLE_ASSIGN_OR_RETURN(const double own, opt(part));
      (forward ? after_ : before_)[r] = own + least_beyond(part, forward);
    }
    return {};
  }

  // The least, over the part's sinks (or sources), of what must still come after (before) it.
  double least_beyond(const std::vector<uint32_t>& part, bool forward) const {
    std::vector<uint8_t> in(model_.num_tasks(), 0);
    for (const uint32_t t : part) in[t] = 1;
    double least = kImpossible;
    for (const uint32_t t : part) {
      double beyond = 0;
      bool inner = false;
      for (const TaskModel::Edge& e : edges(t, forward)) {
        const uint32_t o = other(e, forward);
        if (in[o]) inner = true;
        if (module_of_[o] != module_of_[t]) beyond = std::max(beyond, (forward ? after_ : before_)[o]);
      }
      if (!inner) least = std::min(least, beyond);
    }
    return least < kImpossible ? least : 0;
  }

  Result<double> opt(const std::vector<uint32_t>& part) {
    const auto [it, fresh] = known_.try_emplace(part, 0.0);
    if (left_ > 0) --left_;
    if (!fresh) return it->second;
    const ModuleProblem m{.model = model_.part(part)};
    SolveOptions limits = limits_;
    const double share = limits_.deadline.seconds_left() / static_cast<double>(left_ + 1);
    limits.deadline = limits_.deadline.sooner(std::min(share, kPartSeconds));
    HEDDLE_ASSIGN_OR_RETURN(const ModuleAnswer answer, solver_(m, {}, limits));
    it->second = answer.bound_us;
    if (!answer.claimed_by.empty()) claimed_by_ = answer.claimed_by;
    return it->second;
  }

  const TaskModel& model_;
  const Modules& modules_;
  const ModuleSolver& solver_;
  const SolveOptions limits_;
  std::string claimed_by_;
  std::vector<uint32_t> module_of_;
  std::vector<double> after_, before_;
  std::map<std::vector<uint32_t>, double> known_;
  size_t left_ = 0;
};

}  // namespace

Result<SplitBound> split_bound(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                               const SolveOptions& limits) {
  return Recursion(model, modules, solver, limits).run();
}

}  // namespace heddle
