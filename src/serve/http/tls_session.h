// OpenSSL on a socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "heddle/serve/tls.h"

struct ssl_st;

namespace heddle {

class TlsSession {
 public:
  // `server_name` empty: the server's side. The socket is the caller's.
  static Result<std::unique_ptr<TlsSession>> create(const TlsContext& context, int fd,
                                                    const std::string& server_name);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // As SocketStream's; `wanted` is set with EAGAIN.
  ssize_t receive(void* to, size_t room, uint32_t& wanted);
  ssize_t transmit(const void* from, size_t bytes, uint32_t& wanted);
  bool pending() const;
  void end_output();
  const std::string& why() const { return why_; }

 private:
  TlsSession(ssl_st* ssl, int fd) : ssl_(ssl), fd_(fd) {}
  ssize_t result(int n, uint32_t& wanted);

  ssl_st* ssl_;
  int fd_;
  bool broken_ = false;
  std::string why_;
};

}  // namespace heddle
