// A small HTTP/1.1 server. One thread waits for all connections (epoll); answers may come from any thread and
// at any time, so that a request in work holds no thread. The head of a request settles its greatest cost,
// before its body is read.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/serve/http_message.h"
#include "heddle/serve/rate_limit.h"
#include "heddle/serve/tls.h"

namespace heddle {

// A request's body; empty where there is none.
struct HttpBody {
  std::shared_ptr<std::byte[]> data;
  size_t size = 0;
  std::string_view text() const { return {reinterpret_cast<const char*>(data.get()), size}; }
};

// Where one request's answer goes. The first send() counts; without any, destroying the last copy answers
// with status 500. From any thread.
class HttpReply {
 public:
  struct Impl;
  explicit HttpReply(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  void send(HttpResponse response) const;

 private:
  std::shared_ptr<Impl> impl_;
};

// Is it asked by this method (HEAD stands for GET, too)? If not, it is answered with status 405.
bool asked_by(std::string_view method, const HttpHead& head, const HttpReply& reply);

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;                               // 0: any free one
  size_t max_body_bytes = size_t{64} << 20;   // of one request: 413
  size_t max_bodies_bytes = size_t{1} << 30;  // of all requests in work together: 503
  // Further ones are closed. Without TLS, up to 64 of them at once get 503 before.
  size_t max_connections = 1024;
  std::shared_ptr<RateLimit> rate;        // of all connections together: 429; none: any
  double read_timeout_s = 30;             // from a request's first byte to its last: 408
  double idle_timeout_s = 120;            // of a connection without a request
  std::shared_ptr<const TlsContext> tls;  // none: plain HTTP
  // On a loopback address requests must name this machine as their host: by an address, as localhost, or by
  // one of these, in any case: 403. A page that a browser here shows cannot then reach it by a name of its
  // own.
  std::vector<std::string> host_names;
  std::string bearer_token;  // not empty: requests without it get 401
  // Paths that need no token: what a supervisor asks to learn whether the server lives.
  bool (*is_open)(std::string_view path) = nullptr;
};

struct HttpServerCounters {
  size_t open = 0, body_bytes = 0;  // connections, and the memory of all bodies, now
};

class HttpServer {
 public:
  // Called on the server's thread, one request at a time: must not block.
  using Handler = std::function<void(const HttpHead&, HttpBody, HttpReply)>;

  // Listens from here on. Errors: an address that is malformed, taken or forbidden.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, Handler handler);
  virtual ~HttpServer() = default;  // stop(0)

  virtual int port() const = 0;
  virtual HttpServerCounters counters() const = 0;
  // Takes no new connection or request; waits up to `seconds` for the answers that are due, then closes.
  virtual void stop(double seconds) = 0;
};

}  // namespace heddle
