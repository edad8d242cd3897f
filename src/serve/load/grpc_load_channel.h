// A load generator's way to a gRPC server.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "heddle/serve/load.h"

namespace heddle {

// Each number is a connection of its own. Nothing is sent twice, and no proxy of the environment is between.
std::shared_ptr<grpc::Channel> load_channel(const LoadTarget& target, int number);
// Shows the target's token.
void authorize(const LoadTarget& target, grpc::ClientContext& context);

}  // namespace heddle
