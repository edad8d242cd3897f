// Runs a plan on real or emulated devices, verifies it against the unsplit model and sets it beside its
// prediction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/image.h"
#include "heddle/runtime/run_record.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Model;

// Where a run's inputs come from: by input name a .npy file or a .ppm picture ("" names the only input); the
// rest is random, the same for the same seed.
struct InputOptions {
  std::map<std::string, std::string> files;
  ImageOptions image;
  uint64_t seed = 1;
};
// Floats uniform in [-1, 1), integers in 0..3 (they may be indices), bools either; packed formats stay zero.
void fill_random(const TensorView& tensor, uint64_t seed);

// In the order of graph.inputs(). Random: floats uniform in [-1, 1), integers in 0..3 (they may be indices),
// bools either. A file of another dtype or shape is an error that names both.
Result<std::vector<TensorValue>> make_inputs(const Graph& graph, const InputOptions& options = {});

struct RunOptions {
  int warmups = 3;
  int repeats = 20;
  int in_flight = 1;  // more than 1: pipelined throughput
  InputOptions inputs;
  double rtol = 1e-3, atol = 1e-5;
  bool verify = true;  // where there is a model and the devices move data
  Deadline deadline;   // fewer repeats when it comes early; an error only before the first
  ProgressSink* progress = nullptr;
};

// Outputs that differ are no error: the record says so.
Result<RunRecord> run_plan(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
                           const RunOptions& options = {});

// The unsplit model, compiled by OpenVINO for all cores, on the same inputs; in the order of the graph's
// outputs.
Result<std::vector<TensorValue>> reference_outputs(const Model& model, std::span<const TensorValue> inputs);

struct CompareOptions {
  int rounds = 15;       // alternating: ours, theirs, theirs, ours, ...
  double round_s = 0.1;  // at least this long and one request (throughput: `in_flight` requests) per round
  int in_flight = 4;     // ours, for throughput
  InputOptions inputs;
  Deadline deadline;
  ProgressSink* progress = nullptr;
};
struct Comparison {
  double ours_us = 0, openvino_us = 0;  // medians over rounds, per request
  double ratio = 0;  // median over rounds of ours / theirs of the same round: below 1 is faster
  double ratio_low = 0, ratio_high = 0;  // quartiles
  int rounds = 0;
  int openvino_requests = 1;  // in flight, as OpenVINO finds optimal (throughput)
};
// Latency objectives: against one synchronous request with all cores and the latency hint. Throughput:
// against OpenVINO's throughput hint with its optimal number of asynchronous requests.
Result<Comparison> compare_with_openvino(const Problem& problem, const Plan& plan,
                                         std::shared_ptr<const Model> model,
                                         const CompareOptions& options = {});

}  // namespace heddle
