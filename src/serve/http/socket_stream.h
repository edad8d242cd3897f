// A connected socket that never blocks, with or without encryption.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/serve/tls.h"

struct ssl_st;

namespace heddle {

// Owns a file descriptor.
class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
  ~FileHandle() { reset(); }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  void reset(int fd = -1);
  int get() const { return fd_; }

 private:
  int fd_;
};

// To as many open files as the process may have: each connection is one.
void raise_file_limit();

// From one thread at a time.
class SocketStream {
 public:
  ~SocketStream() { close(); }
  SocketStream() = default;
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  // Takes the socket, which must not block.
  void open(int fd);
  void close() { open(-1); }
  int fd() const { return socket_.get(); }
  // Before the first byte. The handshake happens in receive() and transmit(); its own errors are why().
  Status accept_tls(const TlsContext& context);
  Status connect_tls(const TlsContext& context, const std::string& host);

  // As recv(2) and sendmsg(2): 0 is the end of the stream, -1 an error, EAGAIN means to wait for wanted().
  ssize_t receive(void* to, size_t room);
  // Sends what follows the first `sent` bytes of head and body together.
  ssize_t transmit(std::string_view head, std::string_view body, size_t sent);
  // POLLIN or POLLOUT (EPOLLIN and EPOLLOUT have the same values): what the last call waits for.
  uint32_t wanted() const { return wanted_; }
  // Bytes that were read from the socket and wait for receive(): the socket need not become readable for
  // them.
  bool pending() const;
  // Bytes that were sent and that the peer has not confirmed.
  size_t unconfirmed() const;
  // Nothing will be sent any more.
  void end_output();
  // Why encryption failed; empty: it did not.
  const std::string& why() const { return why_; }

 private:
  Status begin_tls(const TlsContext& context);
  ssize_t tls_result(int n);

  FileHandle socket_;
  ssl_st* ssl_ = nullptr;  // null: not encrypted
  bool broken_ = false;    // by an error of encryption
  std::string why_;
  uint32_t wanted_ = 0;
};

// The oldest of OpenSSL's errors, which is the cause of the others.
std::string openssl_reason();

}  // namespace heddle
