#include "repeated_run.h"

#include <utility>

namespace heddle {

Status RepeatedRun::run(DeviceStream& stream, const std::function<Status()>& work) {
  if (graph_ != nullptr) return stream.launch(*graph_);
  if (runs_ < kWarmRuns || !refusal_.empty()) {
    ++runs_;
    return stream.compute(work);
  }
  Status begun = stream.begin_capture();
  if (begun.ok()) {
    Status enqueued = stream.compute(work);
    auto graph = stream.end_capture();  // also after an error, to end the capture mode
    if (enqueued.ok() && graph.ok()) {
      graph_ = std::move(graph).value();
      return stream.launch(*graph_);
    }
    refusal_ = enqueued.ok() ? graph.error().to_string() : enqueued.error().to_string();
  } else {
    refusal_ = begun.error().to_string();
  }
  return stream.compute(work);
}

void RepeatedRun::forget() {
  runs_ = 0;
  graph_.reset();
  refusal_.clear();
}

}  // namespace heddle
