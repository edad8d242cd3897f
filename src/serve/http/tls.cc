#include "heddle/serve/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <climits>

#include "heddle/base/file.h"
#include "socket_stream.h"

namespace heddle {
namespace {

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* p) const { Free(p); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO, ::BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509, ::X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, ::EVP_PKEY_free>>;

Bio reading(const std::string& text) {
  return Bio(::BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX))));
}

// A key file with a passphrase must not ask for it on the terminal of a server.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<std::shared_ptr<SSL_CTX>> new_context(const SSL_METHOD* method) {
  const std::shared_ptr<SSL_CTX> ctx(::SSL_CTX_new(method), ::SSL_CTX_free);
  if (!ctx) return internal_error("OpenSSL does not start: " + openssl_reason());
  ::SSL_CTX_set_num_tickets(ctx.get(), 0);  // connections are kept; a ticket would look like input
  ::SSL_CTX_set_min_proto_version(ctx.get(), TLS1_2_VERSION);
  // Answers are sent as far as the socket takes them; the rest may lie elsewhere by then.
  ::SSL_CTX_set_mode(ctx.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return ctx;
}

}  // namespace

Result<TlsIdentity> read_tls_identity(const std::string& certificate_file, const std::string& key_file) {
  TlsIdentity identity;
  HEDDLE_ASSIGN_OR_RETURN(identity.certificates, read_file(certificate_file));
  HEDDLE_ASSIGN_OR_RETURN(identity.key, read_file(key_file));
  return identity;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::server(const TlsIdentity& identity) {
  HEDDLE_ASSIGN_OR_RETURN(const auto context, new_context(::TLS_server_method()));
  SSL_CTX* ctx = context.get();
  const Bio chain = reading(identity.certificates);
  const Certificate own(::PEM_read_bio_X509(chain.get(), nullptr, no_passphrase, nullptr));
  if (!own || ::SSL_CTX_use_certificate(ctx, own.get()) != 1)
    return invalid_input("no certificate can be read (" + openssl_reason() +
                         "); expected PEM: '-----BEGIN CERTIFICATE-----'");
  while (X509* next = ::PEM_read_bio_X509(chain.get(), nullptr, no_passphrase, nullptr))
    ::SSL_CTX_add0_chain_cert(ctx, next);
  ::ERR_clear_error();  // the end of the file
  const Bio key_text = reading(identity.key);
  const PrivateKey key(::PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_passphrase, nullptr));
  if (!key)
    return invalid_input("no private key can be read (" + openssl_reason() +
                         "); expected PEM without a passphrase: '-----BEGIN PRIVATE KEY-----'");
  if (::SSL_CTX_use_PrivateKey(ctx, key.get()) != 1 || ::SSL_CTX_check_private_key(ctx) != 1)
    return invalid_input("the private key is not the certificate's (" + openssl_reason() + ")");
  return std::make_shared<const TlsContext>(context);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::client(const std::string& trusted_file) {
  HEDDLE_ASSIGN_OR_RETURN(const auto context, new_context(::TLS_client_method()));
  SSL_CTX* ctx = context.get();
  ::SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
  if (trusted_file.empty()) {
    ::SSL_CTX_set_default_verify_paths(ctx);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(trusted_file));
    const Bio bio = reading(text);
    size_t count = 0;
    for (;; ++count) {
      const Certificate one(::PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
      if (!one) break;
      ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(ctx), one.get());
    }
    ::ERR_clear_error();
    if (count == 0)
      return invalid_input("holds no certificate; expected PEM: '-----BEGIN CERTIFICATE-----'")
          .with_context(trusted_file);
  }
  return std::make_shared<const TlsContext>(context);
}

}  // namespace heddle
