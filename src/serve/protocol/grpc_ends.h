// Both ends of gRPC connections: addresses, servers that listen, and channels to them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "heddle/base/status.h"
#include "heddle/serve/worker_security.h"

namespace heddle {

// HOST:PORT, an IPv6 host in brackets.
std::string host_port(const std::string& host, int port);
// Is it HOST:PORT with a port from 1?
Status check_grpc_address(const std::string& address);

struct GrpcListener {
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};
// Starts the builder's server with this service; `port` 0: any free one. `whom`: what it listens for, in the
// error of an address that is taken or malformed.
Result<GrpcListener> grpc_listen(grpc::ServerBuilder& builder, const std::string& host, int port,
                                 const TlsIdentity& tls, grpc::Service& service, const std::string& whom);
// Ends a call.
grpc::ServerUnaryReactor* grpc_finish(grpc::CallbackServerContext& context, const grpc::Status& status);
// Callers whose host or link is gone say no goodbye: the server asks after a while without a word, so that
// what they had open does not stay for ever.
void ask_silent_callers(grpc::ServerBuilder& builder);
// Not encrypted without a key.
std::shared_ptr<grpc::ServerCredentials> listening_credentials(const TlsIdentity& tls);

// `trusted`: PEM; empty: the system's.
std::shared_ptr<grpc::Channel> grpc_channel(const std::string& address, bool encrypted,
                                            const std::string& trusted,
                                            const grpc::ChannelArguments& arguments);
// Notices soon that the other end is back.
std::shared_ptr<grpc::Channel> worker_channel(const std::string& address, const WorkerSecurity& security);
// Was the call's connection cut? Then another one may reach the other end long before the old one does, for
// which the system tries again ever more rarely.
bool may_be_cut(const grpc::Status& status);

grpc::Status no_token();  // what is answered to who does not prove that it knows the fleet's

}  // namespace heddle
