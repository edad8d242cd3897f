// Runs a plan on real or emulated devices, verifies it against the unsplit model and compares it with its
// prediction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/output_error.h"
#include "heddle/runtime/run_record.h"
#include "heddle/runtime/saved_tensors.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Executor;
class Model;

// Sources of a run's inputs, by input name: a .npy file, an ONNX tensor (.pb) or a .ppm image ("" names the only
// input). All other inputs are random and depend on the seed alone.
struct InputOptions {
  std::map<std::string, std::string> files;
  uint64_t seed = 1;
};
// Floats uniform in [-1, 1), integers in 0..3 (they may be indices), bools either; packed formats stay zero.
void fill_random(const TensorView& tensor, uint64_t seed);

// In the order of graph.inputs(). Random: floats uniform in [-1, 1), integers in 0..3 (they may be indices),
// bools either. A file of another dtype or shape is an error that names both.
Result<std::vector<TensorValue>> make_inputs(const Graph& graph, const InputOptions& options = {});

// Samples of a model's inputs. A folder holds a file for each sample (of the only input), or a folder for each with a
// file for each input: NAME or input_0, input_1, ..., which end in .npy, .pb (ONNX tensors) or .ppm. Without a folder:
// the reference inputs beside the model (test_data_set_0/input_0.pb, ...) that have its shapes, and random ones.
struct CalibrationOptions {
  std::string folder;
  int random = 4;
  uint64_t seed = 1;  // of the first; those of the others follow
};
// Invalid input, with the file and what was expected, if the folder's files are no samples of the model.
Result<std::vector<std::vector<TensorValue>>> calibration_inputs(const Model& model,
                                                                 const CalibrationOptions& options);
// The same for one of several models, which have inputs of their own: the folder `name` inside the options' folder has
// precedence.
Result<std::vector<std::vector<TensorValue>>> calibration_inputs(const Model& model,
                                                                 CalibrationOptions options,
                                                                 const std::string& name);

struct RunOptions {
  int warmups = 3;
  int repeats = 20;
  int in_flight = 1;  // more than 1: pipelined throughput
  InputOptions inputs;
  double rtol = 1e-3, atol = 1e-5;
  bool verify = true;  // if there is a model and the devices move data
  // Gets the tensors of a request, as the plan computed it, if the devices move data (else unsupported). Null: none.
  RunTensors* tensors = nullptr;
  // Inputs on which the error of narrower types is measured; empty: the run's own.
  std::vector<std::vector<TensorValue>> samples;
  DecisionRules decisions;
  Deadline deadline;  // fewer repeats if it comes early; an error only before the first
  ProgressSink* progress = nullptr;
};

// Differing outputs are no error; the record reports them. A plan with types narrower than float32 is verified twice:
// all of it in float32 against the unsplit model, and as it is (RunRecord::precision).
Result<RunRecord> run_plan(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
                           const RunOptions& options = {});

// Outputs of the unsplit model in float32, compiled by OpenVINO for all cores, on the same inputs, in the order of
// the graph's outputs.
Result<std::vector<TensorValue>> reference_outputs(const Model& model, std::span<const TensorValue> inputs);
// The outputs of the model's file from those of its graph: those whose size depends on data are cut to their
// true shapes, which are left out (Model::sized_outputs()). Fails (internal) if a shape does not fit.
Result<std::vector<TensorValue>> file_outputs(const Model& model, std::vector<TensorValue> outputs);
// Copies of the outputs that a request has left in the executor's first slot: file_outputs() if there is a model.
Result<std::vector<TensorValue>> copied_outputs(const Executor& executor, const Model* model);

// Timing in turns: each round times the plan's requests and what they are compared with.
struct RoundOptions {
  int rounds = 15;
  double round_s = 0.1;  // minimum for each side of a round, and at least one request
  int in_flight = 4;     // requests of the plan, for throughput
  InputOptions inputs;
  Deadline deadline;  // fewer rounds if it comes early
  ProgressSink* progress = nullptr;
};
// Engines that run a whole model alone, on all cores. kOpenVino and kOnnxRuntime run it as they come, in the
// precision that they choose themselves; kOpenVinoF32 computes in float32 throughout. kOpenVinoHetero and
// kOpenVinoAuto are OpenVINO's plugins that divide a model among all devices that it finds, and that choose one.
enum class Engine { kOpenVino, kOpenVinoF32, kOnnxRuntime, kOpenVinoHetero, kOpenVinoAuto };
// "openvino", "openvino-f32", "onnxruntime", "openvino-hetero", "openvino-auto"
const char* engine_name(Engine engine);
std::optional<Engine> engine_named(std::string_view name);

struct EngineComparison {
  Engine engine = Engine::kOpenVino;
  std::string absent;                    // why it was not timed; else empty
  double us = 0;                         // median over rounds, per request
  double p95_us = 0;                     // latency objectives: of all its requests
  double ratio = 0;                      // median over rounds of ours / theirs; below 1: ours is faster
  double ratio_low = 0, ratio_high = 0;  // quartiles
  int requests = 1;                      // in flight: its own optimum (throughput)
  OutputError error;
};
struct Comparison {
  double ours_us = 0;      // median over rounds, per request
  double ours_p95_us = 0;  // latency objectives: of all requests
  int rounds = 0;
  std::vector<EngineComparison> engines;  // in the order asked for
};
// Times the plan and the engines in turns. Latency objectives: one request after the other, with each engine's
// settings for latency. Throughput: with its settings for throughput and as many requests in flight as it
// prefers. An engine that is absent or cannot run the model is a row with the reason.
Result<Comparison> compare_with_engines(const Problem& problem, const Plan& plan,
                                        const std::shared_ptr<const Model>& model,
                                        std::span<const Engine> engines, const RoundOptions& options = {});

}  // namespace heddle
