// One device for whole models that take turns on it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "heddle/serve/live_plane.h"

namespace heddle {

class SharedRunner final : public DeviceRunner {
 public:
  // [model], null where the model does not run here; at least one is not.
  explicit SharedRunner(std::vector<std::shared_ptr<DeviceRunner>> runners) : runners_(std::move(runners)) {}

  // The batch is of one model.
  Status run(std::span<LiveRequest* const> batch) override {
    return runners_[batch.front()->model]->run(batch);
  }
  std::vector<int> cores() const override {
    for (const auto& r : runners_)
      if (r) return r->cores();
    return {};
  }

 private:
  std::vector<std::shared_ptr<DeviceRunner>> runners_;
};

}  // namespace heddle
