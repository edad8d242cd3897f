// The measured times of a plan's run, step by step, beside the predicted ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/runtime/precision_error.h"

namespace heddle {

struct MeasuredStep {
  double start_us = 0, finish_us = 0;  // from the request's start; of the median run
  double median_us = 0;                // duration over all measured runs
  double rel_spread = 0;
};

// Comparison with the unsplit model, both in float32; verified is false if no outputs could be compared: emulated
// devices, or memory that holds the plan in its types alone, whose error is measured then.
struct OutputCheck {
  bool verified = false;
  bool outputs_equal = false;
  double max_abs_error = 0, max_rel_error = 0;
  std::optional<PrecisionError> precision;  // of plans that compute in narrower types

  // Does the plan compute what the model computes, as far as its types allow?
  bool right() const { return (outputs_equal || (!verified && precision)) && !wrong(); }
  // What was compared shows that it does not.
  bool wrong() const { return (verified && !outputs_equal) || (precision && !precision->explained()); }
};

struct RunRecord : OutputCheck {
  int warmups = 0, repeats = 0;
  int requests_in_flight = 1;
  std::vector<MeasuredStep> steps;   // one per plan step, same order
  std::vector<double> latencies_us;  // of each measured request
  double measured_us = 0;            // median latency, or time per request (throughput)
  double predicted_us = 0;
  double rtol = 0, atol = 0;  // of the comparison
  std::vector<std::string> outputs_compared;
};

}  // namespace heddle
