#include "load_client.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "heddle/base/json.h"
#include "heddle/serve/live_plane.h"
#include "protocol/grpc_ends.h"

namespace heddle {
namespace {

constexpr size_t kMostAnswerBytes = size_t{1} << 30;

std::string url_of(const LoadTarget& target, const std::string& path) {
  return std::string(target.tls ? "https://" : "http://") + host_port(target.host, target.port) + path;
}

const sockaddr* generic(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.bytes);
}

bool takes_connections(const SocketAddress& address, int ms) {
  const FileHandle socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return false;
  if (::connect(socket.get(), generic(address), address.size) != 0 && errno != EINPROGRESS) return false;
  pollfd p = {socket.get(), POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  return ::poll(&p, 1, ms) == 1 && ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
         error == 0;
}

}  // namespace

Result<std::vector<SocketAddress>> find_addresses(const LoadTarget& target) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  const auto port = std::to_string(target.port);
  if (const int e = ::getaddrinfo(target.host.c_str(), port.c_str(), &hints, &found); e != 0)
    return invalid_input("the host '" + target.host + "' is not known: " + ::gai_strerror(e));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    auto& address = addresses.emplace_back();
    std::memcpy(&address.bytes, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
  }
  return addresses;
}

size_t first_that_connects(std::span<const SocketAddress> addresses, double seconds) {
  if (addresses.size() < 2) return 0;
  const int ms = static_cast<int>(1e3 * seconds / static_cast<double>(addresses.size()));  // of each
  for (size_t i = 0; i < addresses.size(); ++i)
    if (takes_connections(addresses[i], ms)) return i;
  return 0;
}

Result<SocketAddress> find_address(const LoadTarget& target, double seconds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto addresses, find_addresses(target));
  return addresses[first_that_connects(addresses, seconds)];
}

Status LoadConnection::open(const LoadTarget& target, const SocketAddress& address) {
  socket_.open(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  lacks_files_ = socket_.fd() < 0 && (errno == EMFILE || errno == ENFILE);
  if (socket_.fd() < 0)
    return io_error(std::string("no more connections can be opened: ") + std::strerror(errno));
  const int on = 1;
  ::setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_.fd(), generic(address), address.size) != 0 && errno != EINPROGRESS)
    return io_error("cannot connect to " + host_port(target.host, target.port) + ": " + std::strerror(errno));
  if (target.tls) HEDDLE_RETURN_IF_ERROR(socket_.connect_tls(*target.tls, target.host));
  return {};
}

void LoadConnection::send(std::string head, std::string_view tensors) {
  out_ = std::move(head);
  tensors_ = tensors;
  sent_ = 0;
  in_.clear();
  has_head_ = false;
  head_ = {};
}

LoadConnection::Step LoadConnection::advance() {
  while (sent_ < out_.size() + tensors_.size()) {
    const auto sent = socket_.transmit(out_, tensors_, sent_);
    if (sent > 0) {
      sent_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == ENOTCONN) {
      return socket_.wanted() == POLLIN ? Step::kWantsRead : Step::kWantsWrite;
    } else {
      return Step::kBroken;
    }
  }
  char buffer[65536];
  for (;;) {
    if (!has_head_) {
      if (const auto end = head_end(in_)) {
        auto head = read_http_answer_head(std::string_view(in_).substr(0, *end));
        if (!head.ok()) return Step::kBroken;
        head_ = std::move(*head);
        has_head_ = true;
        in_.erase(0, *end);
      } else if (in_.size() > kMostHeadBytes) {
        return Step::kBroken;
      }
    }
    if (has_head_ && is_whole(false)) return Step::kDone;
    const uint64_t most = has_head_ ? head_.content_length.value_or(kMostAnswerBytes) : kMostAnswerBytes;
    if (in_.size() > most || most > kMostAnswerBytes) return Step::kBroken;
    const auto n = socket_.receive(buffer, sizeof buffer);
    if (n > 0) {
      in_.append(buffer, static_cast<size_t>(n));
    } else if (n == 0) {
      return has_head_ && is_whole(true) ? Step::kDone : Step::kBroken;
    } else if (n < 0 && errno == EAGAIN) {
      return socket_.wanted() == POLLOUT ? Step::kWantsWrite : Step::kWantsRead;
    } else {
      return Step::kBroken;
    }
  }
}

bool LoadConnection::is_whole(bool ended) {
  if (head_.chunked) {
    if (!in_.ends_with("\r\n\r\n")) return false;
    auto body = read_chunks(in_);
    if (body) in_ = std::move(*body);
    return body.has_value();
  }
  return head_.content_length ? in_.size() == *head_.content_length : ended;
}

std::string request_head(const LoadTarget& target, const std::string& method, const std::string& path) {
  std::string head =
      method + " " + path + " HTTP/1.1\r\nHost: " + host_port(target.host, target.port) + "\r\n";
  for (const auto& [name, value] : target.headers) head += name + ": " + value + "\r\n";
  if (!target.bearer_token.empty()) head += "Authorization: Bearer " + target.bearer_token + "\r\n";
  return head;
}

std::string error_text(const Result<Json>& json) {
  const bool has_error =
      json.ok() && json->is_object() && json->contains("error") && (*json)["error"].is_string();
  return has_error ? (*json)["error"].get<std::string>() : "";
}

namespace {

Result<HttpAnswer> try_ask(const LoadTarget& target, const std::string& method, const std::string& path,
                           const std::string& body, double seconds) {
  const TimeNs until = live_now() + ns_from_us(seconds * 1e6);
  HEDDLE_ASSIGN_OR_RETURN(const auto address, find_address(target, seconds / 2));
  LoadConnection connection;
  HEDDLE_RETURN_IF_ERROR(connection.open(target, address));
  connection.send(request_head(target, method, path) +
                      (method == "GET" ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") +
                      "\r\n",
                  body);
  for (;;) {
    const auto step = connection.advance();
    if (step == LoadConnection::Step::kDone) return HttpAnswer{connection.status(), connection.body()};
    if (step == LoadConnection::Step::kBroken) {
      const bool closed = connection.sent_any() && !target.tls;
      return io_error(!connection.why().empty() ? connection.why()
                      : closed ? "the connection was closed without an answer of HTTP; if the server "
                                 "expects https, connect to https://HOST:PORT"
                               : "no server answers there; start one with `heddle serve`");
    }
    const TimeNs left = until - live_now();
    if (left <= 0) return io_error("no answer came in time");
    pollfd p = {connection.fd(),
                static_cast<short>(step == LoadConnection::Step::kWantsRead ? POLLIN : POLLOUT), 0};
    ::poll(&p, 1, static_cast<int>(left / 1'000'000) + 1);
  }
}

Result<Json> json_of(const HttpAnswer& answer) {
  auto json = parse_json(answer.body);
  if (answer.status == 200) return json;
  const Code code = answer.status == 404   ? Code::kNotFound
                    : answer.status == 409 ? Code::kInfeasible
                                           : Code::kInvalidInput;
  const auto reason = error_text(json);
  return Error(code, "status " + std::to_string(answer.status) + (reason.empty() ? "" : ": " + reason));
}

}  // namespace

Result<HttpAnswer> ask_http(const LoadTarget& target, const std::string& method, const std::string& path,
                            const std::string& body, double seconds) {
  auto answer = try_ask(target, method, path, body, seconds);
  if (!answer.ok()) return std::move(answer).error().with_context(url_of(target, path));
  return answer;
}

Result<Json> ask_json(const LoadTarget& target, const std::string& method, const std::string& path,
                      const std::string& body, double seconds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto answer, ask_http(target, method, path, body, seconds));
  auto json = json_of(answer);
  if (!json.ok()) return std::move(json).error().with_context(url_of(target, path));
  return json;
}

}  // namespace heddle
