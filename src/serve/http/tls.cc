#include "heddle/serve/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>

#include "heddle/base/file.h"
#include "tls_session.h"

namespace heddle {

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> ctx{nullptr, &::SSL_CTX_free};
};

namespace {

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* p) const { Free(p); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO, ::BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509, ::X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, ::EVP_PKEY_free>>;

// The oldest of OpenSSL's errors, which is the cause of the others.
std::string openssl_reason() {
  const char* reason = ::ERR_reason_error_string(::ERR_get_error());
  ::ERR_clear_error();
  return reason != nullptr ? reason : "no reason given";
}

Error tls_error(const std::string& what) { return Error(Code::kInvalidInput, what); }

Bio reading(const std::string& text) {
  return Bio(::BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX))));
}

// A key file with a passphrase must not ask for it on the terminal of a server.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<std::shared_ptr<TlsContext::Impl>> new_context(const SSL_METHOD* method) {
  auto impl = std::make_shared<TlsContext::Impl>();
  impl->ctx.reset(::SSL_CTX_new(method));
  if (!impl->ctx) return Error(Code::kInternal, "OpenSSL does not start: " + openssl_reason());
  ::SSL_CTX_set_num_tickets(impl->ctx.get(), 0);  // connections are kept; a ticket would look like input
  ::SSL_CTX_set_min_proto_version(impl->ctx.get(), TLS1_2_VERSION);
  // Answers are sent as far as the socket takes them; the rest may lie elsewhere by then.
  ::SSL_CTX_set_mode(impl->ctx.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return impl;
}

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(::BIO_get_data(bio))); }

int after_call(BIO* bio, ssize_t n, bool writing) {
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOTCONN)) {
    if (writing) {
      BIO_set_retry_write(bio);
    } else {
      BIO_set_retry_read(bio);
    }
  }
  return static_cast<int>(n);
}

// OpenSSL's own sockets raise SIGPIPE when the other side is gone.
int write_socket(BIO* bio, const char* from, int bytes) {
  return after_call(
      bio, ::send(socket_of(bio), from, static_cast<size_t>(bytes), MSG_NOSIGNAL | MSG_DONTWAIT), true);
}

int read_socket(BIO* bio, char* to, int room) {
  return after_call(bio, ::recv(socket_of(bio), to, static_cast<size_t>(room), MSG_DONTWAIT), false);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* quiet_socket() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    ::BIO_meth_set_write(m, write_socket);
    ::BIO_meth_set_read(m, read_socket);
    ::BIO_meth_set_ctrl(m, control_socket);
    return m;
  }();
  return method;
}

// A client that does not encrypt is told so in its own language, as far as the socket takes it at once.
void answer_plain_http(int fd) {
  static constexpr std::string_view kAnswer =
      "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
      "Content-Length: 73\r\n\r\n"
      "{\"error\": \"this server expects https here: connect to https://HOST:PORT\"}";
  char rest[4096];
  while (::recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) {
  }
  [[maybe_unused]] const auto n = ::send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<TlsIdentity> read_tls_identity(const std::string& certificate_file, const std::string& key_file) {
  TlsIdentity identity;
  HEDDLE_ASSIGN_OR_RETURN(identity.certificates, read_file(certificate_file));
  HEDDLE_ASSIGN_OR_RETURN(identity.key, read_file(key_file));
  return identity;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::server(const TlsIdentity& identity) {
  HEDDLE_ASSIGN_OR_RETURN(auto impl, new_context(::TLS_server_method()));
  SSL_CTX* ctx = impl->ctx.get();
  const Bio chain = reading(identity.certificates);
  const Certificate own(::PEM_read_bio_X509(chain.get(), nullptr, no_passphrase, nullptr));
  if (!own || ::SSL_CTX_use_certificate(ctx, own.get()) != 1)
    return tls_error("no certificate can be read (" + openssl_reason() +
                     "); expected PEM: '-----BEGIN CERTIFICATE-----'");
  while (X509* next = ::PEM_read_bio_X509(chain.get(), nullptr, no_passphrase, nullptr))
    ::SSL_CTX_add0_chain_cert(ctx, next);
  ::ERR_clear_error();  // the end of the file
  const Bio key_text = reading(identity.key);
  const PrivateKey key(::PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_passphrase, nullptr));
  if (!key)
    return tls_error("no private key can be read (" + openssl_reason() +
                     "); expected PEM without a passphrase: '-----BEGIN PRIVATE KEY-----'");
  if (::SSL_CTX_use_PrivateKey(ctx, key.get()) != 1 || ::SSL_CTX_check_private_key(ctx) != 1)
    return tls_error("the private key is not the certificate's (" + openssl_reason() + ")");
  return std::make_shared<const TlsContext>(std::move(impl));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::client(const std::string& trusted_file) {
  HEDDLE_ASSIGN_OR_RETURN(auto impl, new_context(::TLS_client_method()));
  SSL_CTX* ctx = impl->ctx.get();
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
      return tls_error("holds no certificate; expected PEM: '-----BEGIN CERTIFICATE-----'")
          .with_context(trusted_file);
  }
  return std::make_shared<const TlsContext>(std::move(impl));
}

Result<std::unique_ptr<TlsSession>> TlsSession::create(const TlsContext& context, int fd,
                                                       const std::string& server_name) {
  SSL* ssl = ::SSL_new(context.impl().ctx.get());
  BIO* bio = ssl != nullptr ? ::BIO_new(quiet_socket()) : nullptr;
  if (bio == nullptr) {
    ::SSL_free(ssl);
    return Error(Code::kInternal, "OpenSSL makes no session: " + openssl_reason());
  }
  ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(ssl, bio, bio);
  std::unique_ptr<TlsSession> session(new TlsSession(ssl, fd));
  if (server_name.empty()) {
    ::SSL_set_accept_state(ssl);
    return session;
  }
  ::SSL_set_connect_state(ssl);
  unsigned char address[sizeof(in6_addr)];
  const bool number = ::inet_pton(AF_INET, server_name.c_str(), address) == 1 ||
                      ::inet_pton(AF_INET6, server_name.c_str(), address) == 1;
  if (number) {
    ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), server_name.c_str());
  } else {
    ::SSL_set1_host(ssl, server_name.c_str());
    SSL_set_tlsext_host_name(ssl, server_name.c_str());
  }
  return session;
}

TlsSession::~TlsSession() { ::SSL_free(ssl_); }

ssize_t TlsSession::result(int n, uint32_t& wanted) {
  if (n > 0) return n;
  const int kind = ::SSL_get_error(ssl_, n);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
    wanted = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    errno = EAGAIN;
    return -1;
  }
  if (kind == SSL_ERROR_ZERO_RETURN) return 0;
  broken_ = true;
  if (const long verified = ::SSL_get_verify_result(ssl_); verified != X509_V_OK) {
    why_ = std::string("the server's certificate is refused: ") + ::X509_verify_cert_error_string(verified);
    ::ERR_clear_error();
  } else if (kind == SSL_ERROR_SSL) {
    if (ERR_GET_REASON(::ERR_peek_error()) == SSL_R_HTTP_REQUEST) answer_plain_http(fd_);
    why_ = "TLS failed: " + openssl_reason();
  }
  errno = ECONNRESET;
  return -1;
}

ssize_t TlsSession::receive(void* to, size_t room, uint32_t& wanted) {
  ::ERR_clear_error();
  return result(::SSL_read(ssl_, to, static_cast<int>(std::min<size_t>(room, INT_MAX))), wanted);
}

ssize_t TlsSession::transmit(const void* from, size_t bytes, uint32_t& wanted) {
  ::ERR_clear_error();
  const auto n = result(::SSL_write(ssl_, from, static_cast<int>(std::min<size_t>(bytes, INT_MAX))), wanted);
  if (n != 0) return n;
  errno = EPIPE;  // the other side wants nothing more
  return -1;
}

bool TlsSession::pending() const { return ::SSL_pending(ssl_) > 0; }

void TlsSession::end_output() {
  if (broken_ || ::SSL_in_init(ssl_)) return;  // OpenSSL's rule: no farewell after an error
  ::ERR_clear_error();
  ::SSL_shutdown(ssl_);
}

}  // namespace heddle
