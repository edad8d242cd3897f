// Messages of ModelInfer calls. The server reads them itself: once the call is permitted, within a budget of memory,
// and only if they have no more parts than a request may need.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "open_inference.pb.h"

namespace heddle {

// Bytes that messages take, until their last reader is gone.
class InferBudget {
 public:
  explicit InferBudget(size_t most) : most_(most) {}
  bool take(size_t bytes);
  void give_back(size_t bytes) { taken_ -= bytes; }
  size_t taken() const { return taken_; }

 private:
  const size_t most_;
  std::atomic<size_t> taken_{0};
};

struct InferMessage {
  grpc::Status status;  // why there is no message
  std::shared_ptr<const inference::ModelInferRequest> message;
};
// Empties `bytes`. INVALID_ARGUMENT: no such message, or one of too many parts. UNAVAILABLE: the budget is used up.
InferMessage read_infer_message(grpc::ByteBuffer& bytes, const std::shared_ptr<InferBudget>& budget);

}  // namespace heddle
