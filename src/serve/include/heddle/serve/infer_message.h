// Inference requests and answers as the Open Inference Protocol (KServe v2) has them, whatever the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/graph/types.h"

namespace heddle {

// The protocol's name: "FP32", "INT64", "BOOL"; nullptr for types that it does not have.
const char* protocol_name(DType dtype);
std::optional<DType> dtype_from_protocol(std::string_view name);

class RequestTrace;

// A tensor of a request or an answer. The bytes are row-major, little-endian, without alignment; `owner`
// keeps them alive. Its size is what dtype and shape say.
struct InferTensor {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<const void> owner;
};

struct RequestedOutput {
  std::string name;
  bool binary = false;  // REST: behind the JSON instead of in it
};

// Which session of a model with state a request belongs to.
struct SessionStep {
  std::string id;  // as people read it: 7, or 'caller-7' if the client's id is a text; empty: none
  bool start = false, end = false;
};

struct InferRequest {
  std::string model;
  std::string version;     // empty: the newest
  std::string id;          // the client's; empty: none
  int64_t priority = 0;    // 0: the model's default, else 1 is the highest
  int64_t timeout_us = 0;  // from arrival to answer; 0: the model's SLO
  SessionStep session;
  std::vector<InferTensor> inputs;
  std::vector<RequestedOutput> outputs;  // empty: all
  bool binary_outputs = false;           // of those that do not say
  std::shared_ptr<RequestTrace> trace;   // null: it is not traced
  std::shared_ptr<const void> owner;     // of memory that is the request's until it is answered; null: none
};

// What happened to a request, in us since its arrival at the server.
struct InferTiming {
  double queue = 0;    // until its batch began
  double compute = 0;  // from there to the end of its last partition
  double total = 0;
};

struct InferResponse {
  std::string model, version, id;
  std::vector<InferTensor> outputs;
  InferTiming timing;
  uint32_t batch = 1;  // rows that ran together with the first row of this request, itself included
  double slo_us = 0;   // that the request was held to
  bool binary_default = false;
  std::vector<RequestedOutput> requested;  // as in the request; empty: all
};

}  // namespace heddle
