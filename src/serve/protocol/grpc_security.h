// WorkerSecurity in gRPC's terms.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "heddle/serve/worker_security.h"

namespace heddle {

std::shared_ptr<grpc::ServerCredentials> listening_credentials(const WorkerSecurity& security);
// A channel that notices soon that the other end is back.
std::shared_ptr<grpc::Channel> worker_channel(const std::string& address, const WorkerSecurity& security);
grpc::Status no_token();  // what is answered to who does not prove that it knows the fleet's

}  // namespace heddle
