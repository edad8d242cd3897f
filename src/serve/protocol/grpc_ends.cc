#include "grpc_ends.h"

#include "heddle/base/file.h"
#include "heddle/base/spelling.h"
#include "heddle/serve/http_message.h"

namespace heddle {
namespace {

grpc::ChannelArguments quick_reconnects() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // What an attempt may take, on a busy machine too.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // Sessions end with their channel: none is shared with a channel of an earlier session.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return arguments;
}

}  // namespace

Result<std::string> read_token(const std::string& file, size_t least) {
  HEDDLE_ASSIGN_OR_RETURN(auto token, read_file(file));
  while (!token.empty() && token.back() > 0 && token.back() <= ' ') token.pop_back();
  if (token.size() < least)
    return invalid_input("expected a token of at least " + std::to_string(least) + " characters")
        .with_context(file);
  return token;
}

Result<WorkerSecurity> read_worker_security(const std::string& certificate_file, const std::string& key_file,
                                            const std::string& trusted_file, const std::string& token_file) {
  WorkerSecurity security;
  if (certificate_file.empty() != key_file.empty())
    return invalid_input("--tls-cert and --tls-key need each other; one of them is missing");
  if (certificate_file.empty() && !trusted_file.empty())
    return invalid_input(trusted_file +
                         ": certificates to trust belong to encrypted connections; give "
                         "--tls-cert and --tls-key, too");
  if (!certificate_file.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(security.tls, read_tls_identity(certificate_file, key_file));
    const auto own = TlsContext::server(security.tls);
    if (!own.ok()) return Error(own.error()).with_context(certificate_file + ", " + key_file);
    const auto& trusted = trusted_file.empty() ? certificate_file : trusted_file;
    HEDDLE_RETURN_IF_ERROR(TlsContext::client(trusted));
    HEDDLE_ASSIGN_OR_RETURN(security.trusted, read_file(trusted));
  }
  if (!token_file.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(security.token, read_token(token_file));
  }
  return security;
}

std::string host_port(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Status check_grpc_address(const std::string& address) {
  const auto colon = address.rfind(':');
  const uint64_t port = colon == std::string::npos ? 0 : parse_digits(address.substr(colon + 1)).value_or(0);
  if (port < 1 || port > 65535 || colon == 0 || address.find('/') != std::string::npos ||
      address.size() > 300)
    return invalid_input("the address " + quote_text(address) + ": expected HOST:PORT");
  return {};
}

Result<GrpcListener> grpc_listen(grpc::ServerBuilder& builder, const std::string& host, int port,
                                 const TlsIdentity& tls, grpc::Service& service, const std::string& whom) {
  if (port < 0 || port > 65535)
    return invalid_input("port " + std::to_string(port) + ": expected 0 (any free one) to 65535");
  const auto address = host_port(host, port);
  GrpcListener listener;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server on a port is a mistake
  builder.AddListeningPort(address, listening_credentials(tls), &listener.port);
  builder.RegisterService(&service);
  listener.server = builder.BuildAndStart();
  if (!listener.server || listener.port == 0)
    return io_error("cannot listen on " + address + " for " + whom + "; does another process listen there?");
  return listener;
}

grpc::ServerUnaryReactor* grpc_finish(grpc::CallbackServerContext& context, const grpc::Status& status) {
  auto* const reactor = context.DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

void ask_silent_callers(grpc::ServerBuilder& builder) {
  constexpr int kSilenceMs = 10'000, kAnswerMs = 10'000;
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kSilenceMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kAnswerMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

std::shared_ptr<grpc::ServerCredentials> listening_credentials(const TlsIdentity& tls) {
  if (tls.key.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back({tls.key, tls.certificates});
  return grpc::SslServerCredentials(ssl);
}

std::shared_ptr<grpc::Channel> grpc_channel(const std::string& address, bool encrypted,
                                            const std::string& trusted,
                                            const grpc::ChannelArguments& arguments) {
  if (!encrypted) return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = trusted;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(ssl), arguments);
}

std::shared_ptr<grpc::Channel> worker_channel(const std::string& address, const WorkerSecurity& security) {
  return grpc_channel(address, security.encrypts(), security.trusted, quick_reconnects());
}

bool may_be_cut(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         status.error_code() == grpc::StatusCode::UNAVAILABLE;
}

grpc::Status no_token() {
  return {grpc::StatusCode::UNAUTHENTICATED,
          "every member of this fleet must authenticate with the fleet's token (--token-file)"};
}

}  // namespace heddle
