// A connected socket that never blocks, with or without encryption.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "heddle/serve/tls.h"

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

class TlsSession;

// From one thread at a time.
class SocketStream {
 public:
  SocketStream();
  ~SocketStream();

  // Takes the socket, which must not block.
  void open(int fd);
  void close();
  int fd() const { return socket_.get(); }
  // Before the first byte. The handshake happens in receive() and transmit(); its own errors are why().
  Status accept_tls(const TlsContext& context);
  Status connect_tls(const TlsContext& context, const std::string& host);

  // As recv(2) and sendmsg(2): 0 is the end of the stream, -1 an error, EAGAIN means to wait for wanted().
  ssize_t receive(void* to, size_t room);
  ssize_t transmit(const iovec* parts, size_t count);
  // POLLIN or POLLOUT (EPOLLIN and EPOLLOUT have the same values): what the last call waits for.
  uint32_t wanted() const { return wanted_; }
  // Bytes that were read from the socket and wait for receive(): the socket need not become readable for
  // them.
  bool pending() const;
  // Nothing will be sent any more.
  void end_output();
  // Why encryption failed; empty: it did not.
  const std::string& why() const;

 private:
  FileHandle socket_;
  std::unique_ptr<TlsSession> tls_;
  uint32_t wanted_ = 0;
};

}  // namespace heddle
