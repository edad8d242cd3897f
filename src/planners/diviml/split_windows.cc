#include "split_windows.h"

#include <algorithm>

#include "module_clock.h"

namespace heddle {
namespace {

// Without a deadline a window that the solver cannot finish is left after this time.
constexpr double kWindowSeconds = 20;
// Of the time left when the passes begin, at most this share for one window.
constexpr double kWindowShare = 0.2;
// A window that grows beyond this many times its modules is passed over.
constexpr size_t kMostGrowth = 2;

// The tasks as a module after what the clock of the whole model has timed.
ModuleProblem module_after(const TaskModel& model, const ModuleClock& clock,
                           const std::vector<uint32_t>& tasks) {
  ModuleProblem m{.model = model.part(tasks), .free_us = clock.free_us()};
  for (uint32_t t = 0; t < tasks.size(); ++t) {
    for (const TaskModel::Edge& e : model.in(tasks[t])) {
      for (uint32_t l = 0; l < model.num_requests(); ++l) {
        const auto& end = clock.end(e.src, l);
        if (end.at_us < kImpossible) m.sources.push_back({t, l, end.device, end.at_us, e.bytes});
      }
    }
  }
  return m;
}

void sort_by_start(const TaskModel& model, SplitResult& result) {
  const auto times = time_batches(model, result.batches);
  result.batches = by_start(result.batches, times.start);
  result.value_us = times.makespan;
}

// One window of a schedule.
class BatchWindow {
 public:
  BatchWindow(const TaskModel& model, const std::vector<Batch>& batches) : model_(model), batches_(batches) {
    link();
  }

  // Tasks between two of the window's on some chain of dependencies and device orders belong to it.
  bool choose(const std::vector<std::vector<uint32_t>>& parts, size_t most) {
    in_.assign(model_.num_tasks(), 0);
    for (const auto& part : parts) {
      for (const uint32_t t : part) in_[t] = 1;
    }
    for (bool grown = true; grown;) {
      grown = false;
      after_ = marks(next_, /*forward=*/true);
      const auto before = marks(previous_, /*forward=*/false);
      for (size_t i = 0; i < batches_.size(); ++i) {
        if (!in_[batches_[i].task] && after_[i] && before[i]) in_[batches_[i].task] = 1, grown = true;
      }
    }
    tasks_.clear();
    number_.assign(in_.size(), 0);
    for (uint32_t t = 0; t < in_.size(); ++t) {
      number_[t] = static_cast<uint32_t>(tasks_.size());
      if (in_[t]) tasks_.push_back(t);
    }
    return tasks_.size() <= most;
  }

  ModuleProblem problem() const {
    const size_t k = model_.num_devices(), requests = model_.num_requests();
    // Before: their times do not depend on the window.
    const ModuleProblem whole = whole_problem(model_);
    ModuleClock clock(whole);
    for (size_t i = 0; i < batches_.size(); ++i) {
      if (!in_[batches_[i].task] && !after_[i]) clock.append(batches_[i]);
    }
    ModuleProblem m = module_after(model_, clock, tasks_);
    // After: longest paths to the end in the fixed order.
    m.device_tail_us.assign(k, 0);
    struct Rest {
      double us = -1;  // from the start of that request's batch; negative: not after the window
      uint32_t device = 0;
    };
    std::vector<Rest> rests(model_.num_tasks() * requests);
    const auto tail_of = [&](uint32_t task, size_t l, size_t device) {
      double tail = 0;
      for (const TaskModel::Edge& e : model_.out(task)) {
        const Rest& rest = rests[e.dst * requests + l];
        if (rest.us >= 0) tail = std::max(tail, model_.transfer_us(device, rest.device, e.bytes) + rest.us);
      }
      return tail;
    };
    for (size_t i = batches_.size(); i-- > 0;) {
      const Batch& b = batches_[i];
      if (in_[b.task] || !after_[i]) continue;
      double& tail = m.device_tail_us[b.device];
      for (size_t l = 0; l < requests; ++l) {
        if (b.requests >> l & 1) tail = std::max(tail, tail_of(b.task, l, b.device));
      }
      tail += model_.us(b);
      for (size_t l = 0; l < requests; ++l) {
        if (b.requests >> l & 1) rests[b.task * requests + l] = {tail, b.device};
      }
    }
    for (const uint32_t t : tasks_) {
      for (size_t l = 0; l < requests; ++l) {
        for (size_t d = 0; d < k; ++d) m.tail_us.push_back(tail_of(t, l, d));
      }
    }
    return m;
  }

  // The window's decisions, with the module's numbers.
  std::vector<Batch> own() const {
    std::vector<Batch> own;
    for (const Batch& b : batches_) {
      if (in_[b.task]) own.push_back({number_[b.task], b.device, b.requests});
    }
    return own;
  }

  std::vector<Batch> replaced(const std::vector<Batch>& decided) const {
    std::vector<Batch> all;
    const auto append = [&](uint8_t after) {
      for (size_t i = 0; i < batches_.size(); ++i) {
        if (!in_[batches_[i].task] && after_[i] == after) all.push_back(batches_[i]);
      }
    };
    append(0);
    append_batches(decided, tasks_, all);
    append(1);
    return all;
  }

 private:
  // Neighbours by dependency and by the device's order.
  void link() {
    const size_t requests = model_.num_requests();
    next_.resize(batches_.size());
    previous_.resize(batches_.size());
    std::vector<int> last(model_.num_devices(), -1), made(model_.num_tasks() * requests, -1);
    for (size_t i = 0; i < batches_.size(); ++i) {
      const Batch& b = batches_[i];
      const auto join = [&](int from) {
        if (from < 0) return;
        next_[static_cast<size_t>(from)].push_back(static_cast<uint32_t>(i));
        previous_[i].push_back(static_cast<uint32_t>(from));
      };
      join(last[b.device]);
      last[b.device] = static_cast<int>(i);
      for (size_t l = 0; l < requests; ++l) {
        if ((b.requests >> l & 1) == 0) continue;
        for (const TaskModel::Edge& e : model_.in(b.task)) join(made[e.src * requests + l]);
        made[b.task * requests + l] = static_cast<int>(i);
      }
    }
  }

  // Batches that are reached from the window's (which are marked too), by the links given.
  std::vector<uint8_t> marks(const std::vector<std::vector<uint32_t>>& links, bool forward) const {
    std::vector<uint8_t> marked(batches_.size(), 0);
    for (size_t j = 0; j < batches_.size(); ++j) {
      const size_t i = forward ? j : batches_.size() - 1 - j;
      if (in_[batches_[i].task]) marked[i] = 1;
      if (!marked[i]) continue;
      for (const uint32_t to : links[i]) marked[to] = 1;
    }
    return marked;
  }

  const TaskModel& model_;
  const std::vector<Batch>& batches_;
  std::vector<std::vector<uint32_t>> next_, previous_;
  std::vector<uint8_t> in_, after_;       // task; batch
  std::vector<uint32_t> tasks_, number_;  // of the window; per task: its number there
};

}  // namespace

Result<SplitResult> split_in_order(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                                   const SolveOptions& limits) {
  const size_t k = model.num_devices(), requests = model.num_requests();
  const ModuleProblem whole = whole_problem(model);
  const auto rest = module_paths(whole).rest;
  SplitResult result;
  result.subproblems = modules.tasks.size();
  ModuleClock clock(whole);
  std::vector<int> module_of(model.num_tasks());
  for (size_t s = 0; s < modules.tasks.size(); ++s) {
    for (const uint32_t t : modules.tasks[s]) module_of[t] = static_cast<int>(s);
  }
  for (size_t s = 0; s < modules.tasks.size(); ++s) {
    ModuleProblem m = module_after(model, clock, modules.tasks[s]);
    for (const uint32_t t : modules.tasks[s]) {
      std::vector<double> tails(k, 0);
      for (const TaskModel::Edge& e : model.out(t)) {
        if (module_of[e.dst] == module_of[t]) continue;
        for (size_t d = 0; d < k; ++d)
          tails[d] = std::max(tails[d], least_rest(model, d, e.bytes, &rest[e.dst * k]));
      }
      for (size_t l = 0; l < requests; ++l) m.tail_us.insert(m.tail_us.end(), tails.begin(), tails.end());
    }
    SolveOptions part = limits;
    const double left = limits.deadline.seconds_left() / static_cast<double>(modules.tasks.size() - s);
    part.deadline = limits.deadline.sooner(std::min(left, kWindowSeconds));
    HEDDLE_ASSIGN_OR_RETURN(const ModuleAnswer answer, solver(m, {}, part));
    if (answer.batches.empty()) return SplitResult{};
    ++result.solved;
    const size_t before = result.batches.size();
    append_batches(answer.batches, modules.tasks[s], result.batches);
    for (size_t i = before; i < result.batches.size(); ++i) clock.append(result.batches[i]);
  }
  sort_by_start(model, result);
  return result;
}

Result<size_t> improve_windows(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                               const SolveOptions& limits, SplitResult& result) {
  const auto& parts = modules.tasks;
  size_t solved = 0;
  bool improved = parts.size() > 1;
  const double most_s = std::min(kWindowSeconds, kWindowShare * limits.deadline.seconds_left());
  while (improved && !limits.deadline.should_stop()) {
    improved = false;
    for (size_t t = 0; t + 1 < parts.size() && !limits.deadline.should_stop(); ++t) {
      BatchWindow window(model, result.batches);
      if (!window.choose({parts[t], parts[t + 1]}, kMostGrowth * (parts[t].size() + parts[t + 1].size())))
        continue;
      const ModuleProblem m = window.problem();
      ModuleAnswer start;
      start.batches = window.own();
      start.value_us = module_value(m, start.batches);
      SolveOptions part = limits;
      part.deadline = limits.deadline.sooner(most_s);
      HEDDLE_ASSIGN_OR_RETURN(const ModuleAnswer answer, solver(m, start, part));
      ++solved;
      SplitResult next;
      next.batches = window.replaced(answer.batches);
      sort_by_start(model, next);
      if (next.value_us < result.value_us * (1 - 1e-9)) {
        result.batches = std::move(next.batches);
        result.value_us = next.value_us;
        improved = true;
      }
    }
  }
  return solved;
}

}  // namespace heddle
