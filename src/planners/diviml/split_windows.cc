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

// Starts and places of all requests of all tasks.
struct Placed {
  explicit Placed(const TaskModel& model)
      : finish(model.num_tasks() * model.num_requests(), kImpossible), where(finish.size(), 0) {}
  std::vector<double> finish;
  std::vector<uint32_t> where;
};

void place(const TaskModel& model, const Batch& b, double end, Placed& placed) {
  for (size_t l = 0; l < model.num_requests(); ++l) {
    if ((b.requests >> l & 1) == 0) continue;
    placed.finish[b.task * model.num_requests() + l] = end;
    placed.where[b.task * model.num_requests() + l] = b.device;
  }
}

// What is placed before reaches the module's tasks.
void add_sources(ModuleProblem& m, const Placed& placed, const std::vector<uint8_t>& is_before) {
  const size_t requests = m.model->num_requests();
  for (uint32_t p = 0; p < m.tasks.size(); ++p) {
    for (const TaskModel::Edge& e : m.model->in(m.tasks[p])) {
      if (!is_before[e.src]) continue;
      for (uint32_t l = 0; l < requests; ++l) {
        const size_t u = e.src * requests + l;
        m.sources.push_back({p, l, placed.where[u], placed.finish[u], e.bytes});
      }
    }
  }
}

void sort_by_start(const TaskModel& model, SplitResult& result) {
  const auto times = time_batches(model, result.batches);
  result.batches = by_start(result.batches, times.start);
  result.value_us = times.makespan;
}

// One window of a schedule.
class Window {
 public:
  Window(const TaskModel& model, const std::vector<Batch>& batches) : model_(model), batches_(batches) {
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
    return static_cast<size_t>(std::count(in_.begin(), in_.end(), 1)) <= most;
  }

  ModuleProblem problem() const {
    ModuleProblem m;
    m.model = &model_;
    const size_t k = model_.num_devices(), requests = model_.num_requests();
    for (const uint32_t t : model_.order()) {
      if (in_[t]) m.tasks.push_back(t);
    }
    // Before: their times do not depend on the window.
    std::vector<Batch> before;
    std::vector<uint8_t> is_before(model_.num_tasks(), 0);
    for (size_t i = 0; i < batches_.size(); ++i) {
      if (in_[batches_[i].task] || after_[i]) continue;
      before.push_back(batches_[i]);
      is_before[batches_[i].task] = 1;
    }
    const auto times = time_batches(model_, before);
    Placed placed(model_);
    m.free_us.assign(k, 0);
    for (size_t i = 0; i < before.size(); ++i) {
      const double end = times.start[i] + model_.us(before[i]);
      place(model_, before[i], end, placed);
      m.free_us[before[i].device] = end;
    }
    add_sources(m, placed, is_before);
    // After: longest paths to the end in the fixed order.
    m.device_tail_us.assign(k, 0);
    std::vector<double> rest(model_.num_tasks() * requests, 0);  // from the start of that request's batch
    std::vector<uint32_t> where(rest.size(), 0);
    std::vector<uint8_t> is_after(rest.size(), 0);
    const auto tail_of = [&](uint32_t task, size_t l, size_t device) {
      double tail = 0;
      for (const TaskModel::Edge& e : model_.out(task)) {
        const size_t r = e.dst * requests + l;
        if (is_after[r]) tail = std::max(tail, model_.transfer_us(device, where[r], e.bytes) + rest[r]);
      }
      return tail;
    };
    for (size_t i = batches_.size(); i-- > 0;) {
      const Batch& b = batches_[i];
      if (in_[b.task] || !after_[i]) continue;
      double tail = m.device_tail_us[b.device];
      for (size_t l = 0; l < requests; ++l) {
        if (b.requests >> l & 1) tail = std::max(tail, tail_of(b.task, l, b.device));
      }
      m.device_tail_us[b.device] = tail + model_.us(b);
      for (size_t l = 0; l < requests; ++l) {
        if ((b.requests >> l & 1) == 0) continue;
        const size_t r = b.task * requests + l;
        rest[r] = tail + model_.us(b);
        where[r] = b.device;
        is_after[r] = 1;
      }
    }
    m.tail_us.assign(m.tasks.size() * requests * k, 0);
    for (size_t p = 0; p < m.tasks.size(); ++p) {
      for (size_t l = 0; l < requests; ++l) {
        for (size_t d = 0; d < k; ++d) m.tail_us[(p * requests + l) * k + d] = tail_of(m.tasks[p], l, d);
      }
    }
    return m;
  }

  std::vector<Batch> own() const {
    std::vector<Batch> own;
    for (const Batch& b : batches_) {
      if (in_[b.task]) own.push_back(b);
    }
    return own;
  }

  std::vector<Batch> replaced(const std::vector<Batch>& decided) const {
    std::vector<Batch> all;
    for (size_t i = 0; i < batches_.size(); ++i) {
      if (!in_[batches_[i].task] && !after_[i]) all.push_back(batches_[i]);
    }
    all.insert(all.end(), decided.begin(), decided.end());
    for (size_t i = 0; i < batches_.size(); ++i) {
      if (!in_[batches_[i].task] && after_[i]) all.push_back(batches_[i]);
    }
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
  std::vector<uint8_t> in_, after_;
};

}  // namespace

Result<SplitResult> split_in_order(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                                   const ModuleLimits& limits) {
  const size_t k = model.num_devices(), requests = model.num_requests();
  const auto rest = module_paths(whole_problem(model)).rest;
  SplitResult result;
  result.subproblems = modules.tasks.size();
  Placed placed(model);
  std::vector<uint8_t> done(model.num_tasks(), 0);
  std::vector<double> free(k, 0);
  for (size_t t = 0; t < modules.tasks.size(); ++t) {
    ModuleProblem m;
    m.model = &model;
    m.tasks = modules.tasks[t];
    m.free_us = free;
    add_sources(m, placed, done);
    std::vector<uint8_t> own(model.num_tasks(), 0);
    for (const uint32_t task : m.tasks) own[task] = 1;
    m.tail_us.assign(m.tasks.size() * requests * k, 0);
    for (size_t p = 0; p < m.tasks.size(); ++p) {
      for (size_t d = 0; d < k; ++d) {
        double tail = 0;
        for (const TaskModel::Edge& e : model.out(m.tasks[p])) {
          if (own[e.dst]) continue;
          double least = kImpossible;
          for (size_t to = 0; to < k; ++to)
            least = std::min(least, model.transfer_us(d, to, e.bytes) + rest[model.position(e.dst) * k + to]);
          tail = std::max(tail, least);
        }
        for (size_t l = 0; l < requests; ++l) m.tail_us[(p * requests + l) * k + d] = tail;
      }
    }
    ModuleLimits part = limits;
    const double left = limits.deadline.seconds_left() / static_cast<double>(modules.tasks.size() - t);
    part.deadline = limits.deadline.sooner(std::min(left, kWindowSeconds));
    HEDDLE_ASSIGN_OR_RETURN(const ModuleAnswer answer, solver(m, {}, part));
    if (answer.batches.empty()) return SplitResult{};
    ++result.solved;
    std::vector<double> starts;
    module_value(m, answer.batches, &starts);
    for (size_t i = 0; i < answer.batches.size(); ++i) {
      const Batch& b = answer.batches[i];
      const double end = starts[i] + model.us(b);
      place(model, b, end, placed);
      free[b.device] = std::max(free[b.device], end);
      done[b.task] = 1;
      result.batches.push_back(b);
    }
  }
  sort_by_start(model, result);
  return result;
}

Result<size_t> improve_windows(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                               const ModuleLimits& limits, SplitResult& result) {
  const auto& parts = modules.tasks;
  size_t solved = 0;
  bool improved = parts.size() > 1;
  const double most_s = std::min(kWindowSeconds, kWindowShare * limits.deadline.seconds_left());
  while (improved && !limits.deadline.should_stop()) {
    improved = false;
    for (size_t t = 0; t + 1 < parts.size() && !limits.deadline.should_stop(); ++t) {
      Window window(model, result.batches);
      if (!window.choose({parts[t], parts[t + 1]}, kMostGrowth * (parts[t].size() + parts[t + 1].size())))
        continue;
      const ModuleProblem m = window.problem();
      ModuleAnswer start;
      start.batches = window.own();
      start.value_us = module_value(m, start.batches);
      ModuleLimits part = limits;
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
