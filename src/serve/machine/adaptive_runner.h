// One device's turn at a model, on as many of the device's cores as other work leaves free.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "heddle/runtime/plan_switch.h"
#include "heddle/serve/live_plane.h"

namespace heddle {

// Holds one runner for all cores of the device and one for each smaller set of them. PlanSwitch chooses by the times
// that batches of the same size took: threads that wait for each other are slow if another process has one's core.
class AdaptiveRunner final : public DeviceRunner {
 public:
  // At least one; the first has all cores.
  explicit AdaptiveRunner(std::vector<std::shared_ptr<DeviceRunner>> runners);

  Status run(std::span<LiveRequest* const> batch) override;
  std::vector<int> cores() const override { return runners_.front()->cores(); }
  // Of all batch sizes together. Any thread.
  uint64_t switches() const { return switches_.load(std::memory_order_relaxed); }

 private:
  const std::vector<std::shared_ptr<DeviceRunner>> runners_;
  std::map<size_t, PlanSwitch> of_size_;  // the device's own thread alone uses it
  std::atomic<uint64_t> switches_ = 0;
};

}  // namespace heddle
