// An HTTP server that answers with what it was asked.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/serve/http_server.h"

namespace heddle {

// Answers with method, path and body; "/later" on another thread, "/never" not at all.
class Echo {
 public:
  explicit Echo(HttpServerOptions options = {}) {
    auto server = HttpServer::start(options, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      ++handled;
      if (head.path == "/never") return;
      HttpResponse response;
      response.body = head.method + " " + head.path + " " + std::string(body.text());
      if (head.path != "/later") return reply.send(std::move(response));
      const std::lock_guard lock(mutex_);
      threads_.emplace_back([reply, response] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        reply.send(response);
        reply.send(response);  // the first one counts
      });
    });
    EXPECT_TRUE(server.ok()) << server.error().to_string();
    server_ = std::move(*server);
  }
  ~Echo() {
    server_->stop(1);
    for (auto& t : threads_) t.join();
  }
  int port() const { return server_->port(); }
  HttpServer& server() { return *server_; }
  std::atomic<int> handled{0};

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace heddle
