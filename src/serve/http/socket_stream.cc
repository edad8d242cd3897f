#include "socket_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "tls_session.h"

namespace heddle {

void FileHandle::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

SocketStream::SocketStream() = default;
SocketStream::~SocketStream() = default;

void SocketStream::open(int fd) {
  tls_.reset();
  socket_.reset(fd);
}

void SocketStream::close() { open(-1); }

Status SocketStream::accept_tls(const TlsContext& context) { return connect_tls(context, ""); }

Status SocketStream::connect_tls(const TlsContext& context, const std::string& host) {
  HEDDLE_ASSIGN_OR_RETURN(tls_, TlsSession::create(context, socket_.get(), host));
  return {};
}

ssize_t SocketStream::receive(void* to, size_t room) {
  wanted_ = POLLIN;
  return tls_ ? tls_->receive(to, room, wanted_) : ::recv(socket_.get(), to, room, 0);
}

ssize_t SocketStream::transmit(const iovec* parts, size_t count) {
  wanted_ = POLLOUT;
  if (!tls_) {
    msghdr message = {};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = count;
    return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  for (size_t i = 0; i < count; ++i)
    if (parts[i].iov_len > 0) return tls_->transmit(parts[i].iov_base, parts[i].iov_len, wanted_);
  return 0;
}

bool SocketStream::pending() const { return tls_ && tls_->pending(); }

void SocketStream::end_output() {
  if (tls_) tls_->end_output();
  ::shutdown(socket_.get(), SHUT_WR);
}

const std::string& SocketStream::why() const {
  static const std::string kNothing;
  return tls_ ? tls_->why() : kNothing;
}

}  // namespace heddle
