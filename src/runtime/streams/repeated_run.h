// A piece of work that a stream does again and again at the same addresses: captured as a graph once it is
// warm, then launched whole, which spares the host the calls.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "heddle/runtime/stream_runtime.h"

namespace heddle {

class RepeatedRun {
 public:
  // Enqueues `work` on the stream: the first kWarmRuns times as it is, then by the graph. What cannot be
  // captured (work that waits for its own results) goes on as it is, for good. One thread at a time.
  Status run(DeviceStream& stream, const std::function<Status()>& work);
  // The addresses have changed.
  void forget();
  bool captured() const { return graph_ != nullptr; }
  const std::string& refusal() const {
    return refusal_;
  }  // why it was not captured; empty: it was, or not yet

 private:
  static constexpr int kWarmRuns = 2;  // the first makes libraries' workspaces, the second finds them there
  int runs_ = 0;
  std::unique_ptr<DeviceGraph> graph_;
  std::string refusal_;
};

}  // namespace heddle
