#include "core/executor_bench.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "heddle/base/quantiles.h"
#include "heddle/base/stopwatch.h"
#include "heddle/cluster/cluster.h"
#include "heddle/graph/generators.h"
#include "heddle/plan/builder.h"
#include "heddle/runtime/executor.h"

namespace heddle::bench {
namespace {

// The baseline: a straightforward ready-count loop with the same tasks and dependencies, without priorities.
class ThreadPool {
 public:
  ThreadPool(const std::vector<std::vector<int32_t>>& successors, std::vector<int32_t> pending, int threads)
      : successors_(successors),
        pending0_(std::move(pending)),
        pending_(pending0_.size()),
        position_(pending0_.size()) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  double run_us() {
    const Stopwatch watch;
    for (size_t i = 0; i < pending_.size(); ++i) pending_[i].store(pending0_[i], std::memory_order_relaxed);
    left_.store(pending_.size(), std::memory_order_relaxed);
    clock_.store(0, std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = 0; i < pending0_.size(); ++i) {
        if (pending0_[i] == 0) queue_.push_back(static_cast<int32_t>(i));
      }
    }
    changed_.notify_all();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_.load(std::memory_order_acquire) == 0; });
    return watch.seconds() * 1e6;
  }

  bool respects_order() const {
    for (size_t i = 0; i < successors_.size(); ++i) {
      for (int32_t next : successors_[i]) {
        if (position_[i] >= position_[static_cast<size_t>(next)]) return false;
      }
    }
    return true;
  }

 private:
  void work() {
    while (true) {
      int32_t task = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return quit_ || !queue_.empty(); });
        if (queue_.empty()) return;
        task = queue_.front();
        queue_.pop_front();
      }
      position_[static_cast<size_t>(task)] = clock_.fetch_add(1, std::memory_order_relaxed);
      for (int32_t next : successors_[static_cast<size_t>(task)]) {
        if (pending_[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        {
          const std::lock_guard lock(mutex_);
          queue_.push_back(next);
        }
        changed_.notify_one();
      }
      if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      const std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }

  const std::vector<std::vector<int32_t>>& successors_;
  const std::vector<int32_t> pending0_;
  std::vector<std::atomic<int32_t>> pending_;
  std::vector<int64_t> position_;
  std::atomic<size_t> left_{0};
  std::atomic<int64_t> clock_{0};
  std::mutex mutex_;
  std::condition_variable changed_, done_;
  std::deque<int32_t> queue_;
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

struct Workload {
  Problem problem;
  Plan plan;
  std::vector<std::vector<int32_t>> successors;  // over plan steps
  std::vector<int32_t> pending;
};

Result<std::shared_ptr<const Cluster>> free_cluster(int devices) {
  ClusterBuilder builder("emulated");
  const HostId host = builder.add_host({.name = "host", .memory_bytes = 0});
  const NodeId hub = builder.add_switch("hub");
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = "d" + std::to_string(i);
    device.device_class = "free";
    device.host = host;
    const DeviceId id = builder.add_device(device);
    builder.add_link(
        {.name = "l" + std::to_string(i), .a = builder.device_node(id), .b = hub, .bytes_per_s = 1e30});
  }
  return builder.build();
}

// Transfers of one byte at this speed round to zero time.
Result<Workload> make_workload(const ExecutorBenchOptions& options) {
  Workload w;
  HEDDLE_ASSIGN_OR_RETURN(w.problem.graph, generate_layered({.ops = options.tasks,
                                                             .layers = options.layers,
                                                             .deps = options.tasks * options.edges_per_task,
                                                             .seed = options.seed}));
  HEDDLE_ASSIGN_OR_RETURN(w.problem.cluster, free_cluster(options.devices));
  const auto devices = static_cast<size_t>(options.devices);
  auto costs = std::make_shared<CostTable>(w.problem.graph->num_ops(), devices);
  Assignment assignment;
  const auto order = w.problem.graph->topological_order();
  assignment.order.assign(order.begin(), order.end());
  for (size_t op = 0; op < w.problem.graph->num_ops(); ++op) {
    for (size_t d = 0; d < devices; ++d)
      costs->set(OpId(op), DeviceId(d), {.us = 0, .origin = Origin::kGiven, .rel_spread = 0});
    assignment.device.emplace_back(op % devices);
  }
  w.problem.costs = costs;
  HEDDLE_ASSIGN_OR_RETURN(w.plan, build_plan(w.problem, assignment));
  return w;
}

// Gives the baseline the data dependencies between the same steps.
void make_dag(Workload& w) {
  const Graph& graph = *w.problem.graph;
  const size_t n = w.plan.steps.size();
  w.successors.resize(n);
  w.pending.assign(n, 0);
  std::vector<int32_t> segment_of(graph.num_ops(), -1), run_of(w.plan.segments.size(), -1);
  for (size_t s = 0; s < w.plan.segments.size(); ++s) {
    for (OpId op : w.plan.segments[s].ops) segment_of[op.index()] = static_cast<int32_t>(s);
  }
  std::vector<std::vector<std::pair<int32_t, int32_t>>> arrivals(graph.num_tensors());  // (device, step)
  for (size_t i = 0; i < n; ++i) {
    const Step& step = w.plan.steps[i];
    if (step.kind == StepKind::kRun) run_of[step.segment.index()] = static_cast<int32_t>(i);
    if (step.kind == StepKind::kTransfer)
      arrivals[step.tensor.index()].emplace_back(step.to.value, static_cast<int32_t>(i));
  }
  const auto edge = [&](int32_t from, size_t to) {
    w.successors[static_cast<size_t>(from)].push_back(static_cast<int32_t>(to));
    ++w.pending[to];
  };
  for (size_t i = 0; i < n; ++i) {
    const Step& step = w.plan.steps[i];
    if (step.kind == StepKind::kTransfer) edge(run_of[step.segment.index()], i);
    if (step.kind != StepKind::kRun) continue;
    for (OpId op : w.plan.segments[step.segment.index()].ops) {
      for (TensorId t : graph.op(op).inputs) {
        const OpId producer = graph.tensor(t).producer;
        if (!producer.valid() || segment_of[producer.index()] == step.segment.value) continue;
        int32_t from = run_of[static_cast<size_t>(segment_of[producer.index()])];
        for (const auto& [device, arrival] : arrivals[t.index()]) {
          if (device == step.to.value) from = arrival;
        }
        edge(from, i);
      }
    }
  }
}

Status check_order(const Workload& w, const RequestTiming& timing) {
  for (size_t i = 0; i < w.successors.size(); ++i) {
    for (int32_t next : w.successors[i]) {
      if (timing.steps[i].finish_us > timing.steps[static_cast<size_t>(next)].start_us) {
        return internal_error("the executor ran step " + std::to_string(next) + " before step " +
                              std::to_string(i) + " was done");
      }
    }
  }
  return {};
}

}  // namespace

Result<ExecutorBenchResult> bench_executor(const ExecutorBenchOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(Workload w, make_workload(options));
  make_dag(w);
  HEDDLE_ASSIGN_OR_RETURN(auto executor, Executor::create(w.problem, w.plan, nullptr));
  ExecutorBenchResult result{.tasks = static_cast<int64_t>(w.plan.steps.size())};
  result.pool_threads = options.pool_threads > 0
                            ? options.pool_threads
                            : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  ThreadPool pool(w.successors, w.pending, result.pool_threads);
  HEDDLE_ASSIGN_OR_RETURN(const RequestTiming first, executor->run());
  HEDDLE_RETURN_IF_ERROR(check_order(w, first));
  pool.run_us();
  if (!pool.respects_order()) return internal_error("the baseline ran a task before its inputs");
  std::vector<double> ours, theirs;
  for (int i = 0; i < options.repeats; ++i) {
    const Stopwatch watch;
    HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const auto timing, executor->run());
    ours.push_back(watch.seconds() * 1e6);
    theirs.push_back(pool.run_us());
  }
  const auto tasks = static_cast<double>(result.tasks);
  result.executor_us_per_task = median_us(ours) / tasks;
  result.pool_us_per_task = median_us(theirs) / tasks;
  return result;
}

}  // namespace heddle::bench
