// Runs a plan on real or emulated devices, verifies it against the unsplit model and compares it with its
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
#include "heddle/runtime/run_record.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Model;

// Sources of a run's inputs, by input name: a .npy file or a .ppm image ("" names the only input). All other
// inputs are random and depend on the seed alone.
struct InputOptions {
  std::map<std::string, std::string> files;
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
  bool verify = true;  // if there is a model and the devices move data
  Deadline deadline;   // fewer repeats if it comes early; an error only before the first
  ProgressSink* progress = nullptr;
};

// Differing outputs are no error; the record reports them.
Result<RunRecord> run_plan(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
                           const RunOptions& options = {});

// Outputs of the unsplit model, compiled by OpenVINO for all cores, on the same inputs, in the order of the
// graph's outputs.
Result<std::vector<TensorValue>> reference_outputs(const Model& model, std::span<const TensorValue> inputs);

// Timing in turns: each round times the plan's requests and what they are compared with.
struct RoundOptions {
  int rounds = 15;
  double round_s = 0.1;  // minimum for each side of a round, and at least one request
  int in_flight = 4;     // requests of the plan, for throughput
  InputOptions inputs;
  Deadline deadline;  // fewer rounds if it comes early
  ProgressSink* progress = nullptr;
};
struct Comparison {
  double ours_us = 0, openvino_us = 0;   // medians over rounds, per request
  double ratio = 0;                      // median over rounds of ours / theirs; below 1: ours is faster
  double ratio_low = 0, ratio_high = 0;  // quartiles
  int rounds = 0;
  int openvino_requests = 1;  // in flight: OpenVINO's optimal number (throughput)
};
// Latency objectives: compares with one synchronous request on all cores and the latency hint. Throughput:
// with OpenVINO's throughput hint and its optimal number of asynchronous requests.
Result<Comparison> compare_with_openvino(const Problem& problem, const Plan& plan,
                                         std::shared_ptr<const Model> model,
                                         const RoundOptions& options = {});

}  // namespace heddle
