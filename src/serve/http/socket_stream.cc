#include "socket_stream.h"

#include <linux/sockios.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace heddle {
namespace {

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

// A client that does not encrypt gets a plain HTTP answer that says so, if the socket takes it at once.
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

std::string openssl_reason() {
  const char* reason = ::ERR_reason_error_string(::ERR_get_error());
  ::ERR_clear_error();
  return reason != nullptr ? reason : "no reason given";
}

void FileHandle::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

void raise_file_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void SocketStream::open(int fd) {
  ::SSL_free(ssl_);
  ssl_ = nullptr;
  broken_ = false;
  why_.clear();
  socket_.reset(fd);
}

Status SocketStream::begin_tls(const TlsContext& context) {
  ssl_ = ::SSL_new(context.get());
  BIO* bio = ssl_ != nullptr ? ::BIO_new(quiet_socket()) : nullptr;
  if (bio == nullptr) return internal_error("OpenSSL makes no session: " + openssl_reason());
  // A number where OpenSSL keeps a pointer. NOLINTNEXTLINE(performance-no-int-to-ptr)
  ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd())));
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(ssl_, bio, bio);
  return {};
}

Status SocketStream::accept_tls(const TlsContext& context) {
  HEDDLE_RETURN_IF_ERROR(begin_tls(context));
  ::SSL_set_accept_state(ssl_);
  return {};
}

Status SocketStream::connect_tls(const TlsContext& context, const std::string& host) {
  HEDDLE_RETURN_IF_ERROR(begin_tls(context));
  ::SSL_set_connect_state(ssl_);
  // Fails for what is no address.
  if (::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl_), host.c_str()) != 1) {
    ::SSL_set1_host(ssl_, host.c_str());
    SSL_set_tlsext_host_name(ssl_, host.c_str());
  }
  return {};
}

ssize_t SocketStream::tls_result(int n) {
  if (n > 0) return n;
  const int kind = ::SSL_get_error(ssl_, n);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
    wanted_ = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    errno = EAGAIN;
    return -1;
  }
  if (kind == SSL_ERROR_ZERO_RETURN) return 0;
  broken_ = true;
  if (const long verified = ::SSL_get_verify_result(ssl_); verified != X509_V_OK) {
    why_ = std::string("the server's certificate is refused: ") + ::X509_verify_cert_error_string(verified);
    ::ERR_clear_error();
  } else if (kind == SSL_ERROR_SSL) {
    if (ERR_GET_REASON(::ERR_peek_error()) == SSL_R_HTTP_REQUEST) answer_plain_http(fd());
    why_ = "TLS failed: " + openssl_reason();
  }
  errno = ECONNRESET;
  return -1;
}

ssize_t SocketStream::receive(void* to, size_t room) {
  wanted_ = POLLIN;
  if (ssl_ == nullptr) return ::recv(fd(), to, room, 0);
  ::ERR_clear_error();
  return tls_result(::SSL_read(ssl_, to, static_cast<int>(std::min<size_t>(room, INT_MAX))));
}

ssize_t SocketStream::transmit(std::string_view head, std::string_view body, size_t sent) {
  wanted_ = POLLOUT;
  body.remove_prefix(sent - std::min(sent, head.size()));
  head.remove_prefix(std::min(sent, head.size()));
  if (ssl_ == nullptr) {
    iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                     {const_cast<char*>(body.data()), body.size()}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    return ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  const auto part = head.empty() ? body : head;
  ::ERR_clear_error();
  const auto n =
      tls_result(::SSL_write(ssl_, part.data(), static_cast<int>(std::min<size_t>(part.size(), INT_MAX))));
  if (n != 0) return n;
  errno = EPIPE;  // the other side wants nothing more
  return -1;
}

bool SocketStream::pending() const { return ssl_ != nullptr && ::SSL_pending(ssl_) > 0; }

size_t SocketStream::unconfirmed() const {
  int bytes = 0;
  return ::ioctl(fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

void SocketStream::end_output() {
  // OpenSSL's rule: no farewell after an error.
  if (ssl_ != nullptr && !broken_ && !::SSL_in_init(ssl_)) {
    ::ERR_clear_error();
    ::SSL_shutdown(ssl_);
  }
  ::shutdown(fd(), SHUT_WR);
}

}  // namespace heddle
