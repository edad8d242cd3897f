// Addresses as gRPC takes them, and channels that notice soon that the other end is back.
#pragma once

#include <grpcpp/support/channel_arguments.h>

#include <string>

#include "heddle/base/status.h"

namespace heddle {

// HOST:PORT, an IPv6 host in brackets.
std::string grpc_address(const std::string& host, int port);
// Is it HOST:PORT with a port from 1?
Status check_grpc_address(const std::string& address);
grpc::ChannelArguments quick_reconnects();

}  // namespace heddle
