#include "heddle/fleet/goodput_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "heddle/solve/milp.h"

namespace heddle {
namespace {

constexpr size_t kCutsPerStream = 256;    // added in one round
constexpr double kLeastViolation = 1e-3;  // requests
constexpr size_t kLongestTable = 4096;    // requests of one device; beyond, its best rate

// Requests of one model, in the order of their arrival.
struct Group {
  TimeNs first = 0, last = 0;
  double requests = 0;
};

// The most requests that one device serves in an interval, by its times for batches of 1, 2, ...
class Capacity {
 public:
  explicit Capacity(std::span<const TimeNs> run_ns) {
    for (size_t b = 0; b < run_ns.size(); ++b) {
      per_request_ns_ =
          std::min(per_request_ns_, static_cast<double>(run_ns[b]) / static_cast<double>(b + 1));
    }
    table_.push_back(0);
    for (size_t q = 1; q <= kLongestTable; ++q) {
      TimeNs best = kNever;
      for (size_t b = 1; b <= run_ns.size(); ++b)
        best = std::min(best, table_[q > b ? q - b : 0] + run_ns[b - 1]);
      table_.push_back(best);
    }
  }
  double most(TimeNs length) const {
    size_t known = 0;
    if (length < table_.back())
      known =
          static_cast<size_t>(std::upper_bound(table_.begin(), table_.end(), length) - table_.begin() - 1);
    return most(length, known);
  }
  // `known` is at most the answer, and becomes it if the table goes as far.
  double most(TimeNs length, size_t& known) const {
    if (length >= table_.back()) return std::floor(static_cast<double>(length) / per_request_ns_);
    while (table_[known + 1] <= length) ++known;
    return static_cast<double>(known);
  }
  double per_request_ns() const { return per_request_ns_; }

 private:
  std::vector<TimeNs> table_;  // [requests] least time
  double per_request_ns_ = 1e300;
};

// The runs of one partition: a window for each group of the model.
struct Stream {
  uint32_t pipeline = 0;
  double weight = 1;  // of a request: 1, or device time if the pool is shared
  std::vector<TimeNs> begin, end;
};

// Virtual devices with what runs on them; several streams if models share them.
struct Pool {
  double devices = 0;
  std::vector<Stream> streams;
  std::vector<Capacity> capacity;  // of the first stream
  double most(TimeNs length) const {
    if (streams.size() == 1) return devices * capacity[0].most(length);
    return devices * static_cast<double>(length);
  }
};

// In one pool: for each stream, groups [from, to) have their windows inside the interval.
struct Interval {
  size_t pool = 0;
  std::vector<std::pair<size_t, size_t>> groups;
  double most = 0;
};

class BoundModel {
 public:
  BoundModel(const Deployment& deployment, std::span<const Arrival> arrivals, int64_t variables)
      : deployment_(deployment), groups_(deployment.models.size()) {
    make_groups(arrivals, variables);
    std::map<std::pair<uint32_t, uint32_t>, size_t> pool_of;
    for (uint32_t p = 0; p < deployment.pipelines.size(); ++p) {
      if (groups_[deployment.pipelines[p].model].empty()) continue;  // of another part
      for (size_t k = 0; k < deployment.pipelines[p].partitions.size(); ++k) {
        const DevicePool& part = deployment.pipelines[p].partitions[k];
        const auto [at, is_new] =
            pool_of.emplace(std::pair(part.first_device, part.num_devices), pools_.size());
        if (is_new) pools_.push_back({static_cast<double>(part.num_devices), {}, {}});
        add_stream(pools_[at->second], p, k);
      }
    }
    for (Pool& pool : pools_) {
      if (pool.streams.size() == 1) continue;
      for (size_t s = 0; s < pool.streams.size(); ++s)
        pool.streams[s].weight = pool.capacity[s].per_request_ns();
    }
  }

  // Without any interval all is served. `served` is by pipeline and group, the sum up to the group.
  std::vector<std::vector<double>> all_served() const {
    std::vector<std::vector<double>> served(deployment_.pipelines.size());
    for (const DeployedModel& model : deployment_.models) {
      double rates = 0;
      for (const uint32_t p : model.pipelines) rates += deployment_.pipelines[p].rate_per_s;
      for (const uint32_t p : model.pipelines) {
        const auto& groups = groups_[deployment_.pipelines[p].model];
        const double share = rates > 0 ? deployment_.pipelines[p].rate_per_s / rates : 1;
        double sum = 0;
        for (const Group& g : groups) served[p].push_back(sum += share * g.requests);
      }
    }
    return served;
  }

  // Adds the intervals that `served` violates most. False if there are none.
  bool separate(const std::vector<std::vector<double>>& served) {
    const size_t before = intervals_.size();
    for (size_t i = 0; i < pools_.size(); ++i) {
      for (size_t s = 0; s < pools_[i].streams.size(); ++s) separate(i, s, served);
    }
    return intervals_.size() > before;
  }

  // Variables are the sums, so that each interval has two terms of a stream.
  Milp program(std::vector<std::vector<Var>>& sums) const {
    Milp lp;
    sums.assign(deployment_.pipelines.size(), {});
    for (size_t m = 0; m < groups_.size(); ++m) {
      double arrived = 0;
      std::vector<Var> before;
      for (const Group& g : groups_[m]) {
        arrived += g.requests;
        std::vector<Term> both;
        for (size_t i = 0; i < deployment_.models[m].pipelines.size(); ++i) {
          auto& own = sums[deployment_.models[m].pipelines[i]];
          own.push_back(lp.add_continuous(0, arrived));
          both.push_back({own.back(), 1});
          if (own.size() == 1) continue;
          lp.at_least({{own.back(), 1}, {own[own.size() - 2], -1}}, 0);
          both.push_back({own[own.size() - 2], -1});
        }
        if (!both.empty()) lp.at_most(std::move(both), g.requests);
      }
    }
    for (const auto& own : sums) {
      if (!own.empty()) lp.add_cost(own.back(), -1);
    }
    return lp;
  }

  int32_t add_intervals(Milp& lp, const std::vector<std::vector<Var>>& sums) const {
    const auto first = static_cast<int32_t>(lp.rows().size());
    for (const Interval& interval : intervals_) {
      std::vector<Term> terms;
      const Pool& pool = pools_[interval.pool];
      for (size_t s = 0; s < pool.streams.size(); ++s) {
        const auto [from, to] = interval.groups[s];
        if (from >= to) continue;
        const double scaled = pool.streams[s].weight / pool.streams[0].weight;
        const auto& own = sums[pool.streams[s].pipeline];
        terms.push_back({own[to - 1], scaled});
        if (from > 0) terms.push_back({own[from - 1], -scaled});
      }
      lp.at_most(std::move(terms), interval.most / pool.streams[0].weight);
    }
    return first;
  }

  // The proof of the header, with a multiplier for each interval.
  double bound(std::span<const double> multipliers) const {
    double sum = 0;
    std::vector<std::vector<double>> price(deployment_.pipelines.size());  // [group] steps, then sums
    for (size_t p = 0; p < price.size(); ++p)
      price[p].assign(groups_[deployment_.pipelines[p].model].size() + 1, 0);
    for (size_t i = 0; i < intervals_.size(); ++i) {
      const double v = std::max(0.0, multipliers[i]);
      if (v == 0) continue;
      const Pool& pool = pools_[intervals_[i].pool];
      sum += v * (intervals_[i].most / pool.streams[0].weight);
      for (size_t s = 0; s < pool.streams.size(); ++s) {
        const auto [from, to] = intervals_[i].groups[s];
        if (from >= to) continue;
        const double scaled = v * (pool.streams[s].weight / pool.streams[0].weight);
        price[pool.streams[s].pipeline][from] += scaled;
        price[pool.streams[s].pipeline][to] -= scaled;
      }
    }
    for (auto& own : price) {
      for (size_t j = 1; j < own.size(); ++j) own[j] += own[j - 1];
    }
    for (size_t m = 0; m < groups_.size(); ++m) {
      for (size_t j = 0; j < groups_[m].size(); ++j) {
        double gain = 0;
        for (const uint32_t p : deployment_.models[m].pipelines) gain = std::max(gain, 1 - price[p][j]);
        sum += groups_[m][j].requests * gain;
      }
    }
    // Sums of so many numbers are off by less than this part.
    return sum * (1 + 1e-9) + 1e-9;
  }

  // Forgets the intervals that the last solution did not need.
  void keep_needed(std::span<const double> multipliers) {
    std::vector<Interval> needed;
    for (size_t i = 0; i < intervals_.size(); ++i) {
      if (multipliers[i] > 1e-9) needed.push_back(std::move(intervals_[i]));
    }
    intervals_ = std::move(needed);
  }
  size_t num_intervals() const { return intervals_.size(); }

 private:
  void make_groups(std::span<const Arrival> arrivals, int64_t variables) {
    std::vector<int64_t> count(groups_.size(), 0);
    for (const Arrival& a : arrivals) ++count[a.model];
    int64_t all = 0;  // one group for each request
    for (size_t m = 0; m < groups_.size(); ++m)
      all += count[m] * static_cast<int64_t>(deployment_.models[m].pipelines.size());
    const auto size =
        static_cast<double>(std::max<int64_t>(1, (all + variables - 1) / std::max<int64_t>(1, variables)));
    for (const Arrival& a : arrivals) {
      auto& groups = groups_[a.model];
      if (groups.empty() || groups.back().requests >= size) groups.push_back({a.at, a.at, 0});
      groups.back().last = a.at;
      groups.back().requests += 1;
    }
  }

  static TimeNs least(std::span<const TimeNs> times) {
    return times.empty() ? 0 : *std::min_element(times.begin(), times.end());
  }

  void add_stream(Pool& pool, uint32_t pipeline, size_t partition) {
    const DeployedPipeline& from = deployment_.pipelines[pipeline];
    TimeNs head = 0, tail = 0;
    for (size_t k = 0; k < from.partitions.size(); ++k) {
      const DevicePool& part = from.partitions[k];
      if (k <= partition) head += least(part.transfer_ns);
      if (k < partition) head += least(part.run_ns);
      if (k > partition) tail += least(part.transfer_ns) + least(part.run_ns);
    }
    Stream stream;
    stream.pipeline = pipeline;
    const TimeNs slo = deployment_.models[from.model].slo_ns;
    for (const Group& g : groups_[from.model]) {
      stream.begin.push_back(g.first + head);
      stream.end.push_back(g.last + slo - tail);
    }
    pool.streams.push_back(std::move(stream));
    pool.capacity.emplace_back(from.partitions[partition].run_ns);
  }

  static double up_to(const std::vector<double>& sums, size_t group) {
    return group == 0 ? 0 : sums[group - 1];
  }

  // Intervals from a begin to an end of the stream's windows, for each begin the one that is violated most.
  void separate(size_t at, size_t of, const std::vector<std::vector<double>>& served) {
    const Pool& pool = pools_[at];
    const Stream& stream = pool.streams[of];
    std::vector<std::pair<double, Interval>> found;
    const size_t n = stream.begin.size();
    for (size_t i = 0; i < n; ++i) {
      double most_violated = 0;
      size_t last = n;
      size_t known = 0;  // of the capacity's table, which grows with the interval
      for (size_t j = i; j < n; ++j) {
        const TimeNs length = stream.end[j] - stream.begin[i];
        double over = 0;
        if (pool.streams.size() == 1) {
          const auto& own = served[stream.pipeline];
          over = up_to(own, j + 1) - up_to(own, i) - pool.devices * pool.capacity[0].most(length, known);
        } else {
          over = load(pool, stream.begin[i], stream.end[j], served) - pool.most(length);
        }
        if (over <= most_violated) continue;
        most_violated = over;
        last = j;
      }
      if (last == n || most_violated < kLeastViolation * pool.streams[0].weight) continue;
      Interval interval{at, {}, pool.most(stream.end[last] - stream.begin[i])};
      for (const Stream& s : pool.streams)
        interval.groups.push_back(inside(s, stream.begin[i], stream.end[last]));
      found.emplace_back(most_violated, std::move(interval));
    }
    const size_t most = std::min(found.size(), kCutsPerStream);
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(most), found.end(),
                      [](const auto& x, const auto& y) { return x.first > y.first; });
    for (size_t f = 0; f < most; ++f) intervals_.push_back(std::move(found[f].second));
  }

  static std::pair<size_t, size_t> inside(const Stream& s, TimeNs begin, TimeNs end) {
    const auto from = std::lower_bound(s.begin.begin(), s.begin.end(), begin) - s.begin.begin();
    const auto to = std::upper_bound(s.end.begin(), s.end.end(), end) - s.end.begin();
    return {static_cast<size_t>(from), static_cast<size_t>(std::max(from, to))};
  }

  static double load(const Pool& pool, TimeNs begin, TimeNs end,
                     const std::vector<std::vector<double>>& served) {
    double sum = 0;
    for (const Stream& s : pool.streams) {
      const auto [from, to] = inside(s, begin, end);
      const auto& own = served[s.pipeline];
      sum += s.weight * (up_to(own, to) - up_to(own, from));
    }
    return sum;
  }

  const Deployment& deployment_;
  std::vector<std::vector<Group>> groups_;  // [model]
  std::vector<Pool> pools_;
  std::vector<Interval> intervals_;
};

// The models of each part, by pools that pipelines of different models name.
std::vector<std::vector<uint32_t>> parts_of(const Deployment& deployment) {
  std::vector<uint32_t> part(deployment.models.size());
  std::iota(part.begin(), part.end(), 0U);
  std::map<uint32_t, uint32_t> model_of_device;
  for (const DeployedPipeline& pipeline : deployment.pipelines) {
    for (const DevicePool& pool : pipeline.partitions) {
      const auto [at, is_new] = model_of_device.emplace(pool.first_device, pipeline.model);
      const uint32_t from = part[pipeline.model], to = part[at->second];
      std::replace(part.begin(), part.end(), from, to);
    }
  }
  std::map<uint32_t, std::vector<uint32_t>> models;
  for (uint32_t m = 0; m < part.size(); ++m) models[part[m]].push_back(m);
  std::vector<std::vector<uint32_t>> parts;
  for (auto& [first, list] : models) parts.push_back(std::move(list));
  return parts;
}

Result<double> most_in_time(const Deployment& deployment, std::span<const Arrival> arrivals,
                            const GoodputBoundOptions& options) {
  BoundModel model(deployment, arrivals, options.variables);
  double most = model.bound({});
  auto served = model.all_served();
  for (int round = 0; round < options.rounds && model.separate(served); ++round) {
    if (options.deadline.should_stop()) break;
    std::vector<std::vector<Var>> sums;
    Milp lp = model.program(sums);
    const auto first = static_cast<size_t>(model.add_intervals(lp, sums));
    HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(lp, {.deadline = options.deadline}));
    if (solution.status != SolveStatus::kOptimal || solution.duals.empty()) break;
    std::vector<double> multipliers;
    for (size_t i = 0; i < model.num_intervals(); ++i) multipliers.push_back(-solution.duals[first + i]);
    most = std::min(most, model.bound(multipliers));
    model.keep_needed(multipliers);
    for (size_t p = 0; p < sums.size(); ++p) {
      for (size_t j = 0; j < sums[p].size(); ++j)
        served[p][j] = solution.values[static_cast<size_t>(sums[p][j].index)];
    }
  }
  return most;
}

}  // namespace

double GoodputBound::share() const {
  double in_time = 0, arrivals = 0;
  for (const Part& part : parts) {
    in_time += part.in_time;
    arrivals += static_cast<double>(part.arrivals);
  }
  return arrivals > 0 ? in_time / arrivals : 1;
}

Result<GoodputBound> goodput_bound(const Deployment& deployment, std::span<const Arrival> arrivals,
                                   const GoodputBoundOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_deployment(deployment));
  if (options.rounds < 0 || options.variables < 1)
    return Error(Code::kInvalidInput, "a goodput bound needs at least 0 rounds and 1 variable");
  for (size_t i = 0; i < arrivals.size(); ++i) {
    if (arrivals[i].model >= deployment.models.size() || (i > 0 && arrivals[i].at < arrivals[i - 1].at))
      return Error(Code::kInvalidInput, "arrivals must be sorted and name the deployment's models");
  }
  GoodputBound result;
  for (auto& models : parts_of(deployment)) {
    std::vector<Arrival> own;
    for (const Arrival& a : arrivals) {
      if (std::ranges::find(models, a.model) != models.end()) own.push_back(a);
    }
    GoodputBound::Part part{std::move(models), 0, own.size()};
    HEDDLE_ASSIGN_OR_RETURN(part.in_time, most_in_time(deployment, own, options));
    result.parts.push_back(std::move(part));
  }
  return result;
}

}  // namespace heddle
