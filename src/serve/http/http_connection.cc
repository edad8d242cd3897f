#include "http_connection.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "heddle/base/log.h"
#include "heddle/base/units.h"
#include "plane/fault.h"

namespace heddle {
namespace {

constexpr size_t kRenewingBytes = size_t{1} << 18;

}  // namespace

void HttpLoopState::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(event.get(), &one, sizeof one);
}

void HttpLoopState::come_back(uint64_t id) {
  {
    const std::lock_guard lock(mutex);
    ready.push_back(id);
  }
  wake();
}

void HttpConnection::arm(const HttpLoopState& loop, uint32_t events) const {
  epoll_event e = {};
  e.events = events | EPOLLONESHOT;
  e.data.u64 = id;
  ::epoll_ctl(loop.epoll.get(), EPOLL_CTL_MOD, socket.fd(), &e);
}

void HttpConnection::flush(HttpLoopState& loop) {
  while (out_pending()) {
    if (fault_at(FaultPoint::kWrite)) socket.end_output();
    const auto sent = socket.transmit(out_head, out_body, out_sent);
    if (sent > 0) {
      out_sent += static_cast<size_t>(sent);
    } else if (sent < 0 && errno == EAGAIN) {
      return arm(loop, socket.wanted());
    } else {
      close_after = true;  // the peer is gone: the loop finds out when it reads
      break;
    }
  }
  drop_answer(loop);
  if (close_after) {
    state = State::kLinger;
    socket.end_output();
  } else {
    state = State::kHead;
    if (left_over) return loop.come_back(id);
  }
  arm(loop, EPOLLIN);
}

void HttpConnection::drop_answer(HttpLoopState& loop) {
  loop.body_bytes -= out_body.size();
  out_head.clear();
  out_body = std::string();
  out_sent = out_read = 0;
}

// Not by what the kernel takes, which waits until a large part of its buffer is free.
void HttpConnection::renew() {
  const size_t read = out_sent - std::min(out_sent, socket.unconfirmed());
  if (read < out_read + kRenewingBytes) return;
  out_read = read;
  since = HttpClock::now();
}

void HttpReply::Impl::send(HttpResponse response) {
  if (sent.exchange(true)) return;
  if (!asked.empty())
    log_line(LogLevel::kDebug, "HTTP " + asked + ": " + std::to_string(response.status) + " after " +
                                   format_us(1e6 * since_head.seconds()));
  const bool keep = keep_alive && !loop->stopping.load();
  {
    const std::lock_guard lock(connection->mutex);
    if (connection->socket.fd() >= 0) {
      connection->out_head = http_response_head(response, keep);
      if (!head_only) connection->out_body = std::move(response.body);
      loop->body_bytes += connection->out_body.size();
      connection->out_sent = connection->out_read = 0;
      connection->close_after = !keep;
      connection->since = connection->answered =
          HttpClock::now();  // the time that work took is not the client's
      connection->flush(*loop);
    }
  }
  loop->in_work.fetch_sub(1);
  if (loop->stopping.load()) loop->wake();
}

// Without memory for an error's text the program may end. NOLINTNEXTLINE(bugprone-exception-escape)
HttpReply::Impl::~Impl() {
  if (!sent)
    log_line(LogLevel::kError, "a request was given up without an answer; this is a bug in the server");
  send(http_error(500, "the request was given up without an answer; this is a bug in the server"));
  loop->body_bytes.fetch_sub(body_bytes);
}

void HttpReply::send(HttpResponse response) const {
  if (fault_at(FaultPoint::kReply)) return;  // the last copy answers
  impl_->send(std::move(response));
}

bool asked_by(std::string_view method, const HttpHead& head, const HttpReply& reply) {
  if (head.method == method || (method == "GET" && head.method == "HEAD")) return true;
  auto response = http_error(405, head.path.substr(0, 256) + " is asked by " + std::string(method));
  response.headers.emplace_back("Allow", method);
  reply.send(std::move(response));
  return false;
}

}  // namespace heddle
