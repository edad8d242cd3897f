#include "heddle/serve/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <unordered_map>

#include "heddle/base/log.h"
#include "http_connection.h"
#include "plane/fault.h"

namespace heddle {
namespace {

using State = HttpConnection::State;

constexpr uint64_t kListenId = 0, kEventId = 1, kFirstConnection = 2;
constexpr size_t kReadBytes = 65536;
constexpr int kReadsInTurn = 64;  // of one connection, before the others get theirs
constexpr size_t kMostLingerBytes = size_t{256} << 20;
constexpr double kLingerSeconds = 3;
constexpr size_t kMostRefused = 64;  // connections above the limit that are told so

double seconds_since(HttpClock::time_point t) {
  return std::chrono::duration<double>(HttpClock::now() - t).count();
}

Error socket_error(const HttpServerOptions& o, const std::string& doing) {
  return io_error("cannot " + doing + " " + o.host + ":" + std::to_string(o.port) + ": " +
                  std::strerror(errno));
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    const auto& a = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&a);
  }
  return address.ss_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
}

// Whether a Host header names an address, localhost or one of `names`; all else may be a stranger's name.
bool is_name_of_this_machine(const std::string& host, const std::vector<std::string>& names) {
  std::string name = host;
  if (name.starts_with('[')) return true;  // an address: no resolver gives it another meaning
  if (const auto colon = name.rfind(':'); colon != std::string::npos) name.erase(colon);
  name = lower_case(name);
  in_addr address;
  return name.empty() || name == "localhost" || name.ends_with(".localhost") ||
         ::inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         std::find(names.begin(), names.end(), name) != names.end();
}

class Server final : public HttpServer {
 public:
  Server(const HttpServerOptions& options, Handler handler)
      : options_(options), handler_(std::move(handler)), loop_(std::make_shared<HttpLoopState>()) {
    for (auto& name : options_.host_names) name = lower_case(name);
  }

  ~Server() override { stop(0); }

  Status open() {
    raise_file_limit();
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    const auto port = std::to_string(options_.port);
    if (const int e = ::getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &found); e != 0)
      return invalid_input("the address '" + options_.host + "' is not known: " + ::gai_strerror(e) +
                           "; expected one of this machine, such as 127.0.0.1");
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    listen_.reset(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listen_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listen_.get() < 0 || ::bind(listen_.get(), found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(listen_.get(), 1024) != 0)
      return socket_error(options_, "listen on");
    sockaddr_storage bound = {};
    socklen_t length = sizeof bound;
    ::getsockname(listen_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
    loopback_ = is_loopback(bound);
    port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    loop_->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
    loop_->event.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!watch(listen_.get(), kListenId, EPOLLIN) || !watch(loop_->event.get(), kEventId, EPOLLIN))
      return socket_error(options_, "wait for connections on");
    swept_ = HttpClock::now();
    thread_ = std::thread([this] { run(); });
    return {};
  }

  int port() const override { return port_; }

  HttpServerCounters counters() const override { return {loop_->open, loop_->body_bytes}; }

  void stop(double seconds) override {
    if (!thread_.joinable()) return;
    stop_by_ = HttpClock::now() +
               std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(seconds));
    loop_->stopping.store(true);
    loop_->wake();
    thread_.join();
  }

 private:
  bool watch(int fd, uint64_t id, uint32_t events) const {
    epoll_event e = {};
    e.events = events;
    e.data.u64 = id;
    return ::epoll_ctl(loop_->epoll.get(), EPOLL_CTL_ADD, fd, &e) == 0;
  }

  void run() {
    epoll_event events[64];
    while (!finished()) {
      const int timeout_ms = loop_->stopping ? 20 : 500;
      const int n = ::epoll_wait(loop_->epoll.get(), events, 64, timeout_ms);
      for (int i = 0; i < n; ++i) {
        // A copy: the kernel's struct is packed, so a reference to its member may be misaligned.
        const uint64_t id = events[i].data.u64;
        if (id == kListenId) {
          accept_all();
        } else if (id == kEventId) {
          continue_ready();
        } else if (const auto it = connections_.find(id); it != connections_.end()) {
          on_event(it->second, events[i].events);
        }
      }
      if (seconds_since(swept_) > .25) sweep();
    }
    while (!connections_.empty()) close(connections_.begin()->second);
    listen_.reset();
  }

  bool finished() {
    if (!loop_->stopping) return false;
    if (HttpClock::now() >= stop_by_) return true;
    if (listen_.get() >= 0) listen_.reset();  // closing takes it out of the epoll set
    if (loop_->in_work > 0) return false;
    for (const auto& [id, c] : connections_) {
      const std::lock_guard lock(c->mutex);
      if (c->out_pending()) return false;
    }
    return true;
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listen_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        // Out of descriptors: the connection stays in the queue; do not ask for it at once again.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return;
      }
      // A few of those above the limit are told so; by TLS that would take a handshake.
      if (connections_.size() >= options_.max_connections + (options_.tls ? 0 : kMostRefused) ||
          fault_at(FaultPoint::kAccept)) {
        ::close(fd);
        continue;
      }
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      auto c = std::make_shared<HttpConnection>();
      c->id = next_id_++;
      c->socket.open(fd);
      c->since = HttpClock::now();
      if (options_.tls && !c->socket.accept_tls(*options_.tls).ok()) continue;
      if (!watch(fd, c->id, EPOLLIN | EPOLLONESHOT)) continue;
      const bool full = connections_.size() >= options_.max_connections;
      connections_.emplace(c->id, c);
      loop_->open = connections_.size();
      if (full) refuse(c, http_error(503, "too many connections; try again later"));
    }
  }

  void continue_ready() {
    uint64_t count = 0;
    [[maybe_unused]] const auto n = ::read(loop_->event.get(), &count, sizeof count);
    std::vector<uint64_t> ready;
    {
      const std::lock_guard lock(loop_->mutex);
      ready.swap(loop_->ready);
    }
    for (const uint64_t id : ready)
      if (const auto it = connections_.find(id); it != connections_.end()) on_event(it->second, EPOLLIN);
  }

  // `c` may lie in the map that it leaves.
  void close(const std::shared_ptr<HttpConnection>& c) {
    {
      const std::lock_guard lock(c->mutex);
      if (c->state == State::kBody) give_back(*c);
      c->drop_answer(*loop_);
      c->socket.close();
    }
    const auto left = connections_.extract(c->id);
    loop_->open = connections_.size();
  }

  // The memory of a body that nobody will read.
  void give_back(HttpConnection& c) {
    loop_->body_bytes.fetch_sub(c.body.size);
    c.body = {};
  }

  // By value: closing takes the connection out of the map that the caller's reference may lie in.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  void on_event(std::shared_ptr<HttpConnection> c, uint32_t events) {
    State state;
    {
      const std::lock_guard lock(c->mutex);
      state = c->state;
      if (c->out_pending()) {
        if (events & (EPOLLERR | EPOLLHUP)) {
          state = State::kLinger;
        } else {
          return c->flush(*loop_);
        }
      }
    }
    if (state == State::kWork) return;
    if (state == State::kLinger) return linger(c);
    read(c);
  }

  void linger(const std::shared_ptr<HttpConnection>& c) {
    char buffer[kReadBytes];
    for (;;) {
      const auto n = c->socket.receive(buffer, sizeof buffer);
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) return close(c);
      c->lingered += static_cast<size_t>(n);
      if (c->lingered > kMostLingerBytes) return close(c);
    }
    const std::lock_guard lock(c->mutex);
    c->arm(*loop_, c->socket.wanted());
  }

  // Reads until nothing is there or a request is handed over.
  void read(const std::shared_ptr<HttpConnection>& c) {
    if (advance(c)) return;
    char buffer[kReadBytes];
    for (int turn = 0; turn < kReadsInTurn; ++turn) {
      const bool in_body = c->state == State::kBody;  // no other thread writes it before the request is whole
      char* to = in_body ? reinterpret_cast<char*>(c->body.data.get()) + c->body_have : buffer;
      const size_t room = in_body ? c->body.size - c->body_have : sizeof buffer;
      const auto n = c->socket.receive(to, room);
      if (n < 0 && errno == EAGAIN) {
        const std::lock_guard lock(c->mutex);
        return c->arm(*loop_, c->socket.wanted());
      }
      if (n <= 0 || fault_at(FaultPoint::kRead)) return close(c);
      if (!c->request_begun) {
        c->request_begun = true;
        c->since = HttpClock::now();
      }
      if (in_body) {
        c->body_have += static_cast<size_t>(n);
      } else {
        c->in.append(buffer, static_cast<size_t>(n));
      }
      if (advance(c)) return;
    }
    if (c->socket.pending()) return loop_->come_back(c->id);
    const std::lock_guard lock(c->mutex);
    c->arm(*loop_, EPOLLIN);
  }

  // Goes on with what was read; true: an answer is due or the connection is gone, so nothing more is read.
  bool advance(const std::shared_ptr<HttpConnection>& c) {
    if (c->state == State::kHead) {
      const auto start = c->in.find_first_not_of("\r\n");  // empty lines before a request are skipped
      c->in.erase(0, start);
      const auto end = head_end(c->in);
      if (!end || *end > kMostHeadBytes) {
        if (!end && c->in.size() <= kMostHeadBytes) return false;
        refuse(c, http_error(
                      431, "the request's head has more than " + std::to_string(kMostHeadBytes) + " bytes"));
        return true;
      }
      auto head = read_http_head(std::string_view(c->in).substr(0, *end));
      c->in.erase(0, *end);
      c->head = {};
      if (!head.ok()) {
        refuse(c, http_error(400, head.error().message()));
        return true;
      }
      c->head = std::move(*head);
      c->request_begun = true;
      if (auto no = gate(c->head)) {
        refuse(c, std::move(*no));
        return true;
      }
      c->body.size = c->head.content_length.value_or(0);
      c->body_have = 0;
      if (c->body.size > 0) {
        if (!fault_at(FaultPoint::kBody)) c->body.data.reset(new (std::nothrow) std::byte[c->body.size]);
        if (!c->body.data) {
          c->body = {};
          refuse(c, http_error(503, "there is no memory for the request's body; try again later"));
          return true;
        }
        c->body_have = std::min(c->in.size(), c->body.size);
        std::memcpy(c->body.data.get(), c->in.data(), c->body_have);
        c->in.erase(0, c->body_have);
      }
      loop_->body_bytes.fetch_add(c->body.size);
      if (c->head.expects_continue && c->body_have < c->body.size) {
        constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        [[maybe_unused]] const auto n = c->socket.transmit(kContinue, {}, 0);
      }
      const std::lock_guard lock(c->mutex);
      c->state = State::kBody;
    }
    if (c->body_have < c->body.size) return false;
    hand_over(c);
    return true;
  }

  // What a request may cost is settled before its body is read.
  std::optional<HttpResponse> gate(const HttpHead& head) {
    if (loop_->stopping) return http_error(503, "the server is stopping");
    if (fault_at(FaultPoint::kHead)) return http_error(503, fault_error().message());
    // A page of another site, open in a browser here, must not reach a server that trusts this machine:
    // neither as such, nor by a name of its own that leads here.
    const auto *origin = head.header("origin"), *host = head.header("host");
    if (loopback_ && host != nullptr && !is_name_of_this_machine(*host, options_.host_names))
      return http_error(403,
                        "the host '" + *host + "' is none of this server's names; --allow-host adds one");
    if (origin != nullptr &&
        (host == nullptr || (*origin != "http://" + *host && *origin != "https://" + *host)))
      return http_error(403, "requests of other sites' pages are refused");
    const bool open = options_.is_open != nullptr && options_.is_open(head.path);
    if (!options_.bearer_token.empty() && !open) {
      const auto* given = head.header("authorization");
      if (given == nullptr || !same_secret(*given, "Bearer " + options_.bearer_token)) {
        auto no = http_error(401, "this server wants the header 'Authorization: Bearer TOKEN'");
        no.headers.emplace_back("WWW-Authenticate", "Bearer");
        return no;
      }
    }
    if (options_.rate && !open && !options_.rate->take()) {
      auto no = http_error(429, "more than the permitted requests per second; try again later");
      no.headers.emplace_back("Retry-After", "1");
      return no;
    }
    if (head.chunked)
      return http_error(411, "a body needs a Content-Length; Transfer-Encoding is not supported");
    if (const auto* encoding = head.header("content-encoding"); encoding && *encoding != "identity")
      return http_error(415, "compressed bodies are not supported; send it without Content-Encoding");
    const uint64_t length = head.content_length.value_or(0);
    if (length > options_.max_body_bytes)
      return http_error(413, "the body has " + std::to_string(length) + " bytes, at most " +
                                 std::to_string(options_.max_body_bytes) + " are permitted");
    if (length > 0 && !has_room(length)) {
      auto no =
          http_error(503, "the requests in flight use all the memory permitted for them; try again later");
      no.headers.emplace_back("Retry-After", "1");
      return no;
    }
    return std::nullopt;
  }

  // For a body. Answers that clients have not read in the time for a request are given up for it, the oldest first.
  bool has_room(size_t bytes) {
    while (bytes + loop_->body_bytes > options_.max_bodies_bytes) {
      std::shared_ptr<HttpConnection> slowest;
      auto begun = HttpClock::now();
      for (const auto& [id, c] : connections_) {
        const std::lock_guard lock(c->mutex);
        if (!c->out_pending() || c->answered >= begun ||
            seconds_since(c->answered) <= options_.read_timeout_s)
          continue;
        begun = c->answered;
        slowest = c;
      }
      if (!slowest) return false;
      close(slowest);
    }
    return true;
  }

  // Answers without the handler. Where a body would follow, the connection ends: it is never read.
  void refuse(const std::shared_ptr<HttpConnection>& c, HttpResponse response) {
    c->head.keep_alive &= response.status == 401 || response.status == 429;
    c->head.keep_alive &= c->head.content_length.value_or(0) == 0 && !c->head.chunked;
    auto reply = begin_work(c);
    reply->send(std::move(response));
  }

  void hand_over(const std::shared_ptr<HttpConnection>& c) {
    auto reply = begin_work(c);
    reply->body_bytes = c->body.size;
    // The connection is the answerer's from here on: what the handler reads is taken off it before.
    HttpHead head = std::move(c->head);
    HttpBody body = std::move(c->body);
    c->body = {};
    try {
      if (fault_or_throw_at(FaultPoint::kHandler)) throw std::bad_alloc();
      handler_(head, std::move(body), HttpReply(std::move(reply)));
    } catch (const std::exception&) {
      // Out of memory, most likely: the reply that was lost with it has answered 500.
    }
  }

  std::shared_ptr<HttpReply::Impl> begin_work(const std::shared_ptr<HttpConnection>& c) {
    auto reply = std::make_shared<HttpReply::Impl>();
    reply->loop = loop_;
    reply->connection = c;
    reply->keep_alive = c->head.keep_alive;
    reply->head_only = c->head.method == "HEAD";
    if (logs(LogLevel::kDebug)) reply->asked = c->head.method + " " + c->head.path;
    c->request_begun = !c->in.empty();
    c->since = HttpClock::now();
    loop_->in_work.fetch_add(1);
    const std::lock_guard lock(c->mutex);
    c->state = State::kWork;
    c->left_over = !c->in.empty() || c->socket.pending();
    return reply;
  }

  // Connections that take too long.
  void sweep() {
    swept_ = HttpClock::now();
    std::vector<std::pair<std::shared_ptr<HttpConnection>, State>> late;
    for (const auto& [id, c] : connections_) {
      const std::lock_guard lock(c->mutex);
      if (c->state == State::kWork && !c->out_pending()) continue;
      if (c->out_pending()) c->renew();
      const double most = c->state == State::kLinger             ? kLingerSeconds
                          : c->out_pending() || c->request_begun ? options_.read_timeout_s
                                                                 : options_.idle_timeout_s;
      if (seconds_since(c->since) > most) late.emplace_back(c, c->state);
    }
    for (const auto& [c, state] : late) {
      const bool reading = c->request_begun && (state == State::kHead || state == State::kBody);
      if (!reading) {
        close(c);
        continue;
      }
      if (state == State::kBody) give_back(*c);
      c->head = {};
      c->head.keep_alive = false;
      refuse(c, http_error(408, "the request was not complete in time"));
    }
  }

  HttpServerOptions options_;
  Handler handler_;
  std::shared_ptr<HttpLoopState> loop_;
  FileHandle listen_;
  int port_ = 0;
  bool loopback_ = false;
  std::thread thread_;
  std::unordered_map<uint64_t, std::shared_ptr<HttpConnection>> connections_;
  uint64_t next_id_ = kFirstConnection;
  HttpClock::time_point swept_, stop_by_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, Handler handler) {
  if (options.port < 0 || options.port > 65535)
    return invalid_input("port " + std::to_string(options.port) + ": expected 0 (any free one) to 65535");
  auto server = std::make_unique<Server>(options, std::move(handler));
  HEDDLE_RETURN_IF_ERROR(server->open());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace heddle
