#include "heddle/fleet/load_bound.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

constexpr size_t kMostSteps = 96;       // leaving out any of them keeps the bound a bound
constexpr double kMostInHorizon = 512;  // requests that a device completes in the times that are looked at

// A pool of devices, or of links that carry batches from one pool to the next.
struct PoolLimits {
  uint64_t devices = 0, batch = 1;
  const std::vector<TimeNs>* run_ns = nullptr;  // the deployment's
  TimeNs least = 0;                             // shortest run
  TimeNs around = 0;                            // the pipeline's shortest times before and after it
  double per_ns = 0;                            // requests at the best batch
  std::vector<TimeNs>
      done_by;  // [m - 1] the least time in which a device completes m requests, up to the horizon
};

PoolLimits limits_of(uint64_t devices, const std::vector<TimeNs>& run_ns, uint32_t batch) {
  PoolLimits l{.devices = devices, .batch = batch, .run_ns = &run_ns, .least = kNever};
  for (uint32_t b = 0; b < batch; ++b) {
    l.least = std::min(l.least, run_ns[b]);
    l.per_ns = std::max(l.per_ns, static_cast<double>(devices) * (b + 1.) / static_cast<double>(run_ns[b]));
  }
  return l;
}

void complete_until(TimeNs horizon, PoolLimits& pool) {
  for (;;) {
    TimeNs next = kNever;
    const size_t m = pool.done_by.size() + 1;
    for (size_t b = 1; b <= pool.batch; ++b)  // a larger batch than is left counts, too
      next = std::min(next, (*pool.run_ns)[b - 1] + (m > b ? pool.done_by[m - b - 1] : 0));
    if (next > horizon) return;
    pool.done_by.push_back(next);
  }
}

// C(j) >= the time of request j - `before`, plus `time`.
struct Lag {
  uint64_t before = 0;
  TimeNs time = 0;
};

// For each time up to the horizon, with how much is done in less: `at_once` at its very beginning.
std::vector<Lag> lags_of(std::vector<std::pair<TimeNs, uint64_t>> done, uint64_t at_once, TimeNs horizon) {
  std::ranges::sort(done);
  std::vector<Lag> all;
  uint64_t before = at_once;
  for (const auto& [time, n] : done) {
    if (time > horizon) break;
    if (all.empty() || all.back().time != time) all.push_back({before, time});
    before += n;
  }
  if (all.size() <= kMostSteps) return all;
  std::vector<Lag> some;
  for (size_t i = 0; i < kMostSteps; ++i) some.push_back(all[i * all.size() / kMostSteps]);
  return some;
}

// The recursion of the header for one stage. try_next() looks, take() commits.
class Stage {
 public:
  void add(const PoolLimits& pool) {
    pools_.push_back(pool);
    least_ = std::min(least_, pool.least + pool.around);
  }
  void finish(TimeNs horizon) {
    std::vector<std::pair<TimeNs, uint64_t>> since_arrival, between;
    uint64_t at_once = 0;
    TimeNs most_around = 0;
    for (const auto& pool : pools_) {
      at_once += pool.devices * pool.batch;
      per_ns_ += pool.per_ns;
      around_ += pool.per_ns * static_cast<double>(pool.around);
      most_around = std::max(most_around, pool.around);
      for (const TimeNs t : pool.done_by) {
        since_arrival.emplace_back(t + pool.around, pool.devices);
        between.emplace_back(t, pool.devices);
      }
    }
    arrivals_ = lags_of(std::move(since_arrival), 0, horizon);
    completions_ = lags_of(std::move(between), at_once, horizon);
    for (const auto& pool : pools_)
      fluid_from_ += static_cast<uint64_t>(pool.per_ns * static_cast<double>(most_around - pool.around)) + 1;
  }
  double try_next(double at) {
    const uint64_t j = done_.size();
    next_ = at + static_cast<double>(least_);
    next_at_ = at;
    for (const auto& [before, time] : arrivals_)
      if (before <= j)
        next_ = std::max(next_, (before == 0 ? at : at_[j - before]) + static_cast<double>(time));
    for (const auto& [before, time] : completions_)
      if (before <= j) next_ = std::max(next_, done_[j - before] + static_cast<double>(time));
    if (fluid_from_ <= j) {
      const uint64_t i = j - fluid_from_;
      next_fluid_ = std::max(fluid_, at_[i] - static_cast<double>(i) / per_ns_);
      next_ = std::max(next_, next_fluid_ + (static_cast<double>(j + 1) + around_) / per_ns_);
    }
    return next_;
  }
  void take() {
    at_.push_back(next_at_);
    done_.push_back(next_);
    fluid_ = next_fluid_;
  }

 private:
  std::vector<PoolLimits> pools_;
  TimeNs least_ = kNever;
  std::vector<Lag> arrivals_, completions_;
  std::vector<double> at_, done_;  // arrivals and completions of the requests taken
  double per_ns_ = 0, around_ = 0;
  uint64_t fluid_from_ = 0;
  double fluid_ = -1e300, next_fluid_ = -1e300, next_ = 0, next_at_ = 0;
};

// Times are sums of floating-point numbers; each step rounds by at most half a unit in the last place.
double rounding(double at, uint64_t steps) { return 1e-3 + at * 0x1p-52 * static_cast<double>(steps); }

struct Window {
  TimeNs slo = 0, horizon = 0;
};

uint64_t most_in_time(std::vector<Stage> stages, Window window, const std::vector<TimeNs>& arrivals) {
  for (auto& s : stages) s.finish(window.horizon);
  uint64_t n = 0;
  for (const TimeNs at : arrivals) {
    auto t = static_cast<double>(at);
    for (auto& s : stages) t = s.try_next(t);
    if (t > static_cast<double>(at + window.slo) + rounding(t, n + stages.size())) continue;
    for (auto& s : stages) s.take();
    ++n;
  }
  return n;
}

using Pools = std::vector<PoolLimits>;  // of one pipeline, its links between them

// One stage: the bottleneck of each pipeline.
uint64_t at_bottlenecks(const std::vector<Pools>& pipelines, Window window,
                        const std::vector<TimeNs>& arrivals) {
  std::vector<Stage> stages(1);
  for (const auto& pools : pipelines) {
    auto least = *std::ranges::min_element(pools, {}, &PoolLimits::per_ns);
    for (const auto& p : pools) least.around += p.least;
    least.around -= least.least;
    stages[0].add(least);
  }
  return most_in_time(std::move(stages), window, arrivals);
}

// All pools are looked at over the same times, as those left out would seem to complete nothing.
Window complete_requests(TimeNs slo, std::vector<Pools>& pipelines) {
  double shortest = static_cast<double>(slo);
  for (const auto& pools : pipelines)
    for (const auto& p : pools) shortest = std::min(shortest, static_cast<double>(p.devices) / p.per_ns);
  const TimeNs horizon = std::min(slo, static_cast<TimeNs>(kMostInHorizon * shortest));
  for (auto& pools : pipelines)
    for (auto& p : pools) complete_until(horizon, p);
  return {slo, horizon};
}

// As many stages as the pipelines have pools and links.
uint64_t in_stages(const std::vector<Pools>& pipelines, Window window, const std::vector<TimeNs>& arrivals) {
  std::vector<Stage> stages(pipelines[0].size());
  for (const auto& pools : pipelines)
    for (size_t k = 0; k < pools.size(); ++k) stages[k].add(pools[k]);
  return most_in_time(std::move(stages), window, arrivals);
}

uint64_t servers_of(const Deployment& d, const DevicePool& pool) {
  std::vector<uint32_t> servers;
  for (uint32_t i = 0; i < pool.num_devices; ++i) servers.push_back(d.devices[pool.first_device + i].server);
  std::ranges::sort(servers);
  return static_cast<uint64_t>(std::unique(servers.begin(), servers.end()) - servers.begin());
}

Pools pools_of(const Deployment& d, const DeployedPipeline& pipeline) {
  Pools pools;
  uint64_t senders = 0;
  for (const auto& pool : pipeline.partitions) {
    const uint64_t receivers = servers_of(d, pool);
    if (!pool.transfer_ns.empty())
      pools.push_back(limits_of(std::min(senders, receivers), pool.transfer_ns, pipeline.batch));
    pools.push_back(limits_of(pool.num_devices, pool.run_ns, pipeline.batch));
    senders = receivers;
  }
  return pools;
}

}  // namespace

Result<std::vector<uint64_t>> bound_in_time(const Deployment& deployment, std::span<const Arrival> arrivals) {
  std::vector<std::vector<TimeNs>> times(deployment.models.size());
  TimeNs last = 0;
  for (const auto& a : arrivals) {
    if (a.model >= times.size() || a.at < last)
      return invalid_input("a bound needs sorted arrivals of the deployment's models");
    times[a.model].push_back(last = a.at);
  }
  std::vector<uint64_t> bound;
  for (size_t m = 0; m < times.size(); ++m) {
    const auto& model = deployment.models[m];
    std::vector<Pools> pipelines;
    bool equal = true;
    for (const uint32_t p : model.pipelines) {
      pipelines.push_back(pools_of(deployment, deployment.pipelines[p]));
      equal = equal && pipelines.back().size() == pipelines[0].size();
    }
    if (pipelines.empty()) {
      bound.push_back(0);
      continue;
    }
    const Window window = complete_requests(model.slo_ns, pipelines);
    const uint64_t one = at_bottlenecks(pipelines, window, times[m]);
    bound.push_back(equal ? std::min(one, in_stages(pipelines, window, times[m])) : one);
  }
  return bound;
}

}  // namespace heddle
