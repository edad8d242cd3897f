// Between the messages of gRPC and ours.
#pragma once

#include <grpcpp/support/status.h>

#include "heddle/base/status.h"
#include "heddle/serve/infer_message.h"
#include "open_inference.pb.h"

namespace heddle {

grpc::Status grpc_status(const Error& error);
// What HTTP has for the same; see also http_status(Code).
int http_status(grpc::StatusCode code);

// Raw tensors stay where they are in the message, which must outlive the request. Errors (invalid input) name
// the tensor. O(size of the tensors).
Result<InferRequest> infer_request_from_proto(const inference::ModelInferRequest& message);
// Tensors are copied as raw contents.
void infer_response_to_proto(const InferResponse& response, inference::ModelInferResponse& message);

}  // namespace heddle
