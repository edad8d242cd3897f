#include "adaptive_runner.h"

#include "heddle/runtime/affinity.h"

namespace heddle {

AdaptiveRunner::AdaptiveRunner(std::vector<std::shared_ptr<DeviceRunner>> runners)
    : runners_(std::move(runners)) {}

Status AdaptiveRunner::run(std::span<LiveRequest* const> batch) {
  PlanSwitch& choice = of_size_.try_emplace(batch.size(), runners_.size()).first->second;
  DeviceRunner& runner = *runners_[choice.next()];
  const TimeNs start = live_now();
  {
    const AffinityGuard bound(runner.cores());
    HEDDLE_RETURN_IF_ERROR(runner.run(batch));
  }
  const uint64_t before = choice.switches();
  choice.took(us_from_ns(live_now() - start));
  switches_.fetch_add(choice.switches() - before, std::memory_order_relaxed);
  return {};
}

}  // namespace heddle
