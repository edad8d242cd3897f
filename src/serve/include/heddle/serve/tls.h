// Encryption of HTTP connections by OpenSSL: what a server shows and what a client trusts.
#pragma once

#include <memory>
#include <string>

#include "heddle/base/status.h"

struct ssl_ctx_st;

namespace heddle {

// A certificate chain and its private key, both PEM.
struct TlsIdentity {
  std::string certificates, key;
};
// Errors: a file that cannot be read.
Result<TlsIdentity> read_tls_identity(const std::string& certificate_file, const std::string& key_file);

// TLS 1.2 and 1.3. Shared by all connections of a server or client; from any thread.
class TlsContext {
 public:
  // Errors: no certificate or key in the texts, a key that is not the certificate's.
  static Result<std::shared_ptr<const TlsContext>> server(const TlsIdentity& identity);
  // Trusts the certificates in a PEM file, or the system's when the name is empty. Errors: no such file, none
  // in it.
  static Result<std::shared_ptr<const TlsContext>> client(const std::string& trusted_file);

  explicit TlsContext(std::shared_ptr<ssl_ctx_st> ctx) : ctx_(std::move(ctx)) {}
  ssl_ctx_st* get() const { return ctx_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> ctx_;
};

}  // namespace heddle
