// Errors of regions that ONNX Runtime computes inside an OpenVINO model.
#pragma once

#include "heddle/base/status.h"

namespace heddle {

// OpenVINO loses exceptions of an inference that runs on the calling thread alone (one stream of one thread). So a
// region whose run fails there leaves its error with the caller, who makes one of these before infer() and asks it
// after; its outputs are then zeros. A region that runs on another thread throws. One at a time on a thread.
class RegionFaults {
 public:
  RegionFaults();
  ~RegionFaults();
  RegionFaults(const RegionFaults&) = delete;
  RegionFaults& operator=(const RegionFaults&) = delete;

  // The first error since this was made.
  Status status() const { return status_; }

  // Takes the error to the calling thread's RegionFaults. False if it has none.
  static bool take(const Error& error);

 private:
  Status status_;
};

}  // namespace heddle
