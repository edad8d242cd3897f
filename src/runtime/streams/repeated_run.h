// Work that a stream repeats at the same addresses. After warm-up it is captured as a graph and launched as a
// whole, which saves the host's calls.
#pragma once

#include <functional>
#include <memory>

#include "heddle/runtime/stream_runtime.h"

namespace heddle {

class RepeatedRun {
 public:
  // Enqueues `work` on the stream: directly for the first kWarmRuns times, then as a graph. Work that cannot
  // be captured (because it waits for its own results) is always enqueued directly. One thread at a time.
  Status run(DeviceStream& stream, const std::function<Status()>& work);
  // Call this when addresses have changed.
  void forget();
  bool captured() const { return graph_ != nullptr; }

 private:
  static constexpr int kWarmRuns = 2;  // the first allocates libraries' workspaces, the second reuses them
  int runs_ = 0;                       // without a graph
  std::unique_ptr<DeviceGraph> graph_;
};

}  // namespace heddle
