#include "lns_surroundings.h"

#include <algorithm>

namespace heddle {
namespace {

class Survey {
 public:
  Survey(const FlatProblem& flat, const TimedPlan& timed, size_t first, size_t last)
      : flat_(flat), plan_(*timed.plan), timed_(timed), first_(first), last_(last) {}

  Surroundings run() {
    before();
    after();
    makespan();
    params();
    return std::move(around_);
  }

 private:
  void before() {
    around_.free_us.assign(flat_.num_devices(), 0);
    for (size_t i = 0; i < first_; ++i) {
      const uint32_t v = plan_.order[i];
      double& free = around_.free_us[plan_.device[v]];
      free = std::max(free, (*timed_.finish)[v]);
    }
  }

  void after() {
    around_.rest_us.assign(flat_.num_ops(), 0);
    around_.tail_us.assign(flat_.num_devices(), 0);
    for (size_t i = plan_.order.size(); i-- > last_;) {
      const uint32_t v = plan_.order[i], d = plan_.device[v];
      double rest = around_.tail_us[d];
      for (const uint32_t o : flat_.overlaps(d)) rest = std::max(rest, around_.tail_us[o]);
      for (const uint32_t t : flat_.outputs(v)) {
        for (const uint32_t w : flat_.readers(t))
          rest = std::max(rest, flat_.transfer_us(d, plan_.device[w], flat_.bytes(t)) + around_.rest_us[w]);
      }
      around_.rest_us[v] = around_.tail_us[d] = rest + flat_.us(v, d);
    }
  }

  // Chains that pass by the window.
  void makespan() {
    double& least = around_.least_us;
    for (size_t d = 0; d < flat_.num_devices(); ++d)
      least = std::max(least, around_.free_us[d] + around_.tail_us[d]);
    std::vector<uint8_t> is_before(flat_.num_ops(), 0);
    for (size_t i = 0; i < first_; ++i) {
      is_before[plan_.order[i]] = 1;
      least = std::max(least, (*timed_.finish)[plan_.order[i]]);
    }
    for (size_t i = last_; i < plan_.order.size(); ++i) {
      const uint32_t w = plan_.order[i];
      double head = 0;
      for (const uint32_t t : flat_.inputs(w)) {
        const uint32_t u = flat_.producer(t);
        if (is_before[u])
          head = std::max(head, (*timed_.finish)[u] +
                                    flat_.transfer_us(plan_.device[u], plan_.device[w], flat_.bytes(t)));
      }
      least = std::max(least, head + around_.rest_us[w]);
    }
  }

  void params() {
    const bool cold = flat_.is_cold();
    if (!flat_.has_limits() && !cold) return;
    around_.brought.assign(flat_.num_pools() * flat_.num_params(), 0);
    around_.loaded_us.assign(flat_.num_resources(), 0);
    for (size_t pool = 0; pool < flat_.num_pools(); ++pool) around_.room.push_back(flat_.pool_limit(pool));
    for (size_t i = 0; i < plan_.order.size(); ++i) {
      if (i >= first_ && i < last_) continue;
      const uint32_t v = plan_.order[i], d = plan_.device[v], pool = flat_.pool(d);
      int64_t bytes = 0;
      for (const uint32_t p : flat_.params(v)) {
        uint8_t& there = around_.brought[pool * flat_.num_params() + p];
        if (!there) bytes = plus_bytes(bytes, flat_.param_bytes(p));
        there = 1;
      }
      around_.room[pool] = plus_bytes(around_.room[pool], -bytes);
      if (!cold || bytes == 0 || i >= last_ || !flat_.needs_load(d)) continue;
      const auto& way = flat_.load_way(d);
      for (const uint32_t r : way.resources) around_.loaded_us[r] += way.time_us(bytes);
    }
  }

  const FlatProblem& flat_;
  const FlatPlan& plan_;
  const TimedPlan& timed_;
  const size_t first_, last_;
  Surroundings around_;
};

}  // namespace

Surroundings survey(const FlatProblem& flat, const TimedPlan& timed, size_t first, size_t last) {
  return Survey(flat, timed, first, last).run();
}

}  // namespace heddle
