#include "heddle/fleet/load_bound.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

struct PoolLimits {
  TimeNs least = 0;      // transfer and run of a request
  TimeNs run = 0;        // of the shortest batch
  double per_ns = 0;     // requests at the best batch
  uint64_t at_once = 0;  // requests in one batch on each device
};

PoolLimits limits_of(const DevicePool& pool, uint32_t batch) {
  PoolLimits l{kNever, kNever, 0, uint64_t{pool.num_devices} * batch};
  for (uint32_t b = 0; b < batch; ++b) {
    const TimeNs send = pool.transfer_ns.empty() ? 0 : pool.transfer_ns[b];
    l.least = std::min(l.least, send + pool.run_ns[b]);
    l.run = std::min(l.run, pool.run_ns[b]);
    l.per_ns = std::max(l.per_ns, pool.num_devices * (b + 1.) / static_cast<double>(pool.run_ns[b]));
  }
  return l;
}

// The recursion of the header for one stage. try_next() looks, take() commits.
class Stage {
 public:
  void add(const PoolLimits& pool) {
    least_ = std::min(least_, pool.least);
    per_ns_ += pool.per_ns;
    pools_.push_back(pool);
  }
  void finish() {
    for (const auto& window : pools_) {
      uint64_t n = 0;
      for (const auto& pool : pools_)
        n += pool.at_once * static_cast<uint64_t>((window.run + pool.run - 1) / pool.run);
      lags_.emplace_back(n, window.run);
    }
  }
  double try_next(double at) {
    fluid_ = std::max(fluid_taken_, at) + 1 / per_ns_;
    next_ = std::max(at + static_cast<double>(least_), fluid_);
    for (const auto& [n, time] : lags_)
      if (n <= done_.size()) next_ = std::max(next_, done_[done_.size() - n] + static_cast<double>(time));
    return next_;
  }
  void take() {
    done_.push_back(next_);
    fluid_taken_ = fluid_;
  }

 private:
  TimeNs least_ = kNever;
  double per_ns_ = 0;
  std::vector<PoolLimits> pools_;
  std::vector<std::pair<uint64_t, TimeNs>> lags_;  // at most so many completions in so much time
  std::vector<double> done_;                       // completions of the requests taken
  double fluid_taken_ = 0, fluid_ = 0, next_ = 0;
};

// Times are sums of floating-point numbers; each step rounds by at most half a unit in the last place.
double rounding(double at, uint64_t steps) { return 1e-3 + at * 0x1p-52 * static_cast<double>(steps); }

uint64_t most_in_time(std::vector<Stage> stages, TimeNs window, const std::vector<TimeNs>& arrivals,
                      TimeNs before) {
  for (auto& s : stages) s.finish();
  uint64_t n = 0;
  for (const TimeNs at : arrivals) {
    double t = static_cast<double>(at + before);
    for (auto& s : stages) t = s.try_next(t);
    if (t > static_cast<double>(at + window) + rounding(t, n + stages.size())) continue;
    for (auto& s : stages) s.take();
    ++n;
  }
  return n;
}

// One stage: the bottleneck of each pipeline.
uint64_t at_bottlenecks(const std::vector<std::vector<PoolLimits>>& pipelines, TimeNs slo,
                        const std::vector<TimeNs>& arrivals) {
  Stage stage;
  TimeNs before = kNever, after = kNever;
  for (const auto& pools : pipelines) {
    const auto least = std::min_element(pools.begin(), pools.end(),
                                        [](const auto& a, const auto& b) { return a.per_ns < b.per_ns; });
    TimeNs head = 0, tail = 0;
    for (auto p = pools.begin(); p != least; ++p) head += p->least;
    for (auto p = least + 1; p != pools.end(); ++p) tail += p->least;
    before = std::min(before, head);
    after = std::min(after, tail);
    stage.add(*least);
  }
  return most_in_time({std::move(stage)}, slo - after, arrivals, before);
}

// As many stages as the pipelines have partitions.
uint64_t in_stages(const std::vector<std::vector<PoolLimits>>& pipelines, TimeNs slo,
                   const std::vector<TimeNs>& arrivals) {
  std::vector<Stage> stages(pipelines[0].size());
  for (const auto& pools : pipelines)
    for (size_t k = 0; k < pools.size(); ++k) stages[k].add(pools[k]);
  return most_in_time(std::move(stages), slo, arrivals, 0);
}

}  // namespace

Result<std::vector<uint64_t>> bound_in_time(const Deployment& deployment, std::span<const Arrival> arrivals) {
  std::vector<std::vector<TimeNs>> times(deployment.models.size());
  TimeNs last = 0;
  for (const auto& a : arrivals) {
    if (a.model >= times.size() || a.at < last)
      return Error(Code::kInvalidInput, "a bound needs sorted arrivals of the deployment's models");
    times[a.model].push_back(last = a.at);
  }
  std::vector<uint64_t> bound;
  for (size_t m = 0; m < times.size(); ++m) {
    const auto& model = deployment.models[m];
    std::vector<std::vector<PoolLimits>> pipelines;
    bool equal = true;
    for (const uint32_t p : model.pipelines) {
      const auto& pipeline = deployment.pipelines[p];
      auto& pools = pipelines.emplace_back();
      for (const auto& pool : pipeline.partitions) pools.push_back(limits_of(pool, pipeline.batch));
      equal = equal && pools.size() == pipelines[0].size();
    }
    if (pipelines.empty()) {
      bound.push_back(0);
      continue;
    }
    const uint64_t one = at_bottlenecks(pipelines, model.slo_ns, times[m]);
    bound.push_back(equal ? std::min(one, in_stages(pipelines, model.slo_ns, times[m])) : one);
  }
  return bound;
}

}  // namespace heddle
