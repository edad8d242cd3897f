// A model as a service offers it under its name: the tensors that go in and out, and how rows are batched.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"
#include "heddle/serve/live_plane.h"

namespace heddle {

// One tensor of a model. Where the model is batched, the first dimension is that of the batch and not in
// `row`.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape row;
  int64_t row_bytes = 0;  // of one row; the whole tensor where the model is not batched
  // Outputs whose size depends on data: `row` is their largest shape, another output has the true one.
  int true_shape = -1;  // that output's index; -1: `row` is the shape, or it follows from the inputs'
  Shape open;           // `row`, the largest shape, with -1 for the dimensions that vary; empty: none does
  bool hidden = false;  // such a true shape, which clients do not see
  // Of a session: clients do not send such an input, and get such an output only if they name it.
  bool state = false;

  bool listed() const { return !hidden && !state; }  // in the model's metadata
  const Shape& shown() const { return open.empty() ? row : open; }
};

// One of the shapes that a model of varying shapes is compiled for.
struct ServedBucket {
  std::string name;                    // "1x3x48x320"
  std::vector<Shape> inputs, outputs;  // of a row, in the model's order
  double share = 0;                    // of the requests, as planned
  double us = 0;                       // time of a request that is alone, on the fastest device
};

// How a request runs that is smaller than its bucket.
enum class SmallerRuns {
  kPadded,   // as large as the bucket; outputs are cut back
  kAtOwn,    // at its own shape, by an engine that takes any
  kRefused,  // not at all
};

// What a model of varying shapes takes.
struct VaryingShapes {
  std::vector<ServedBucket> buckets;  // a request is of the first that holds it
  SmallerRuns smaller = SmallerRuns::kRefused;
  std::string refusal;      // kRefused: why
  std::vector<double> pad;  // [input] kPadded
  // The outputs' shapes, of a row, for those of the inputs; invalid input if the model does not take these. -1
  // where a size depends on data.
  std::function<Result<std::vector<Shape>>(std::span<const Shape> inputs)> output_rows;
};

// What a model carries from one request of a session to the next.
struct SessionState {
  struct Tensor {
    size_t input = 0, output = 0;    // of the model: of one type, and of one shape that does not vary
    int64_t row_bytes = 0;           // of one row
    std::vector<std::byte> initial;  // of one row, in a session's first request; empty: zeros
  };
  std::vector<Tensor> tensors;
  TimeNs idle_ns = 0;  // a session without a request for so long ends

  int64_t row_bytes() const {
    int64_t all = 0;
    for (const auto& t : tensors) all += t.row_bytes;
    return all;
  }
};

// The tensors of a model that timed devices serve: its input's bytes are thrown away, so a client may send any
// number, or none.
inline constexpr const char* kPayloadInput = "payload";    // UINT8 [-1]
inline constexpr const char* kBatchOutput = "batch_size";  // INT64 [1]: rows that ran together
inline constexpr const char* kDigestOutput = "digest";     // UINT64 [1], with workers: payload_digest()

inline constexpr int kLastPriority = 65535;

struct ServedModel {
  std::string name, version, platform;
  std::vector<TensorInfo> inputs, outputs;
  bool batched = false;      // the first dimension of all tensors is that of the batch
  int max_rows = 1;          // of one request
  bool any_payload = false;  // emulated devices: one UINT8 input of any size, which is not read
  bool remote = false;       // computed in other processes: rows travel, and come back as LiveRequest::result
  // Levels of priority that requests may ask for, from 1, the highest; 0: any up to kLastPriority. One that
  // asks for none, or for another, has the default one; 0: the last.
  int priority_levels = 0, default_priority = 0;
  double slo_us = 0;
  // Null: requests do not depend on each other. A model that is loaded again has another one.
  std::shared_ptr<const SessionState> state;
  std::shared_ptr<const VaryingShapes> varying;  // null: all requests have the shapes of `inputs`
  std::string note;                              // for people, such as why it is not batched; may be empty
  // For people: what the type costs that the model computes in. Empty: it computes in float32.
  std::string precision;
};

// A model without a file: timed devices serve it and compute nothing. With workers it answers with a digest, too.
std::shared_ptr<ServedModel> timed_model(const std::string& name, double slo_us, bool workers);

// One row of a request, as the devices see it. What it points to outlives it.
struct TensorRow : LiveRequest {
  std::vector<const std::byte*> inputs;  // in the model's order
  std::vector<std::byte*> outputs;
  // Of a model that runs requests at their own shape: those of inputs and outputs, in the model's order. Else null.
  const std::vector<Shape>*input_shapes = nullptr, *output_shapes = nullptr;
  // What a model's parts on different devices leave for those behind them, by tensor of the model's graph.
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> features;
};

}  // namespace heddle
