// Addresses as gRPC takes them, and connections whose ends notice each other going and coming back.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "heddle/base/status.h"

namespace heddle {

// HOST:PORT, an IPv6 host in brackets.
std::string grpc_address(const std::string& host, int port);
// Is it HOST:PORT with a port from 1?
Status check_grpc_address(const std::string& address);
grpc::ChannelArguments quick_reconnects();

// Callers whose host or link is gone say no goodbye: the server asks after a while without a word, so that
// what they had open does not stay for ever.
void ask_silent_callers(grpc::ServerBuilder& builder);

// Was the call's connection cut? Then another one may reach the other end long before the old one does, for
// which the system tries again ever more rarely.
bool may_be_cut(const grpc::Status& status);

}  // namespace heddle
