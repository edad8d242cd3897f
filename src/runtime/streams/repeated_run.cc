#include "repeated_run.h"

#include <utility>

namespace heddle {

Status RepeatedRun::run(DeviceStream& stream, const std::function<Status()>& work) {
  if (graph_ != nullptr) return stream.launch(*graph_);
  const bool captures = runs_ == kWarmRuns;  // only once: what cannot be captured never can
  ++runs_;
  if (captures && stream.begin_capture().ok()) {
    const bool enqueued = stream.compute(work).ok();
    auto graph = stream.end_capture();  // also after an error, to end the capture mode
    if (enqueued && graph.ok()) {
      graph_ = std::move(graph).value();
      return stream.launch(*graph_);
    }
  }
  return stream.compute(work);
}

void RepeatedRun::forget() {
  runs_ = 0;
  graph_.reset();
}

}  // namespace heddle
