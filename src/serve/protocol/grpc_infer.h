// Messages of ModelInfer calls. The server reads and writes them itself: requests once the call is permitted, and both
// within a budget of memory.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <memory>

#include "heddle/base/status.h"
#include "heddle/serve/infer_message.h"
#include "memory_budget.h"
#include "open_inference.pb.h"

namespace heddle {

// Counts in its budget until its last reader is gone.
using InferMessage = std::shared_ptr<const inference::ModelInferRequest>;

struct ReadInferMessage {
  grpc::Status status;  // why there is no message
  InferMessage message;
};
// Empties `bytes`. INVALID_ARGUMENT: no such message. RESOURCE_EXHAUSTED: it could take more than the whole budget.
// UNAVAILABLE: the budget is used up. O(bytes).
ReadInferMessage read_infer_message(grpc::ByteBuffer& bytes, const std::shared_ptr<MemoryBudget>& budget);

// The request and its tensors keep the message. Errors: those of infer_request_from_proto().
Result<InferRequest> infer_request_of(const InferMessage& message);

// Counts in the budget until it is sent, or given up.
grpc::Status write_infer_answer(const InferResponse& answer, const std::shared_ptr<MemoryBudget>& budget,
                                grpc::ByteBuffer& bytes);

}  // namespace heddle
