// An answer to any inference request that was understood.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/infer_json.h"
#include "require.h"

// Its outputs are the request's inputs, of which each byte is read.
inline heddle::InferResponse answer_to(const heddle::InferRequest& request) {
  heddle::InferResponse response;
  unsigned sum = 0;
  for (const auto& t : request.inputs) {
    require(heddle::tensor_bytes(t.dtype, t.shape) == t.bytes);
    for (int64_t i = 0; i < t.bytes; ++i) sum += static_cast<unsigned>(t.data[i]);
    response.outputs.push_back(t);
  }
  response.id = request.id;
  response.batch = sum;
  return response;
}

inline void check_body_of(const heddle::InferResponse& response) {
  const auto body = heddle::infer_response_body(response);
  require(body.json_bytes.value_or(body.bytes.size()) <= body.bytes.size());
}
