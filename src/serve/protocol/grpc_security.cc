#include "grpc_security.h"

#include "grpc_address.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr size_t kLeastToken = 8;

}  // namespace

Result<std::string> read_token(const std::string& file) {
  HEDDLE_ASSIGN_OR_RETURN(auto token, read_file(file));
  while (!token.empty() && token.back() > 0 && token.back() <= ' ') token.pop_back();
  if (token.size() < kLeastToken)
    return Error(Code::kInvalidInput,
                 "expected a token of at least " + std::to_string(kLeastToken) + " characters")
        .with_context(file);
  return token;
}

Result<WorkerSecurity> read_worker_security(const std::string& certificate_file, const std::string& key_file,
                                            const std::string& trusted_file, const std::string& token_file) {
  WorkerSecurity security;
  if (certificate_file.empty() != key_file.empty())
    return Error(Code::kInvalidInput, "--tls-cert and --tls-key belong together; one of them is missing");
  if (certificate_file.empty() && !trusted_file.empty())
    return Error(Code::kInvalidInput, trusted_file +
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

std::shared_ptr<grpc::ServerCredentials> listening_credentials(const WorkerSecurity& security) {
  if (!security.encrypts()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back({security.tls.key, security.tls.certificates});
  return grpc::SslServerCredentials(ssl);
}

std::shared_ptr<grpc::Channel> worker_channel(const std::string& address, const WorkerSecurity& security) {
  if (!security.encrypts())
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), quick_reconnects());
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = security.trusted;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(ssl), quick_reconnects());
}

grpc::Status no_token() {
  return {grpc::StatusCode::UNAUTHENTICATED,
          "whoever takes part in this fleet proves that it knows the fleet's token (--token-file)"};
}

}  // namespace heddle
