// A collector of OpenTelemetry traces: keeps the spans that it is sent, and answers as a test wants.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/serve/http_server.h"

namespace heddle {

class Collector {
 public:
  Collector() {
    auto server = HttpServer::start({}, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      take(head, std::string(body.text()), reply);
    });
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  ~Collector() { server_->stop(0); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  int port() const { return server_->port(); }
  // What the next exports get; 0: no answer at all. `answer`: the body of a 200.
  std::atomic<int> status{200};
  std::string answer = "{}";  // before the first export
  std::atomic<int> exports{0};

  std::vector<Json> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }
  // Of the spans with this name the first one's trace; empty: none came.
  std::vector<Json> named(const std::string& name) const {
    std::vector<Json> out;
    for (const auto& s : spans())
      if (s["name"] == name) out.push_back(s);
    return out;
  }
  Json resource() const {
    const std::lock_guard lock(mutex_);
    return resource_;
  }
  std::string header(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto it = headers_.find(name);
    return it == headers_.end() ? "" : it->second;
  }
  std::string path() const {
    const std::lock_guard lock(mutex_);
    return path_;
  }

 private:
  void take(const HttpHead& head, const std::string& body, const HttpReply& reply) {
    ++exports;
    const int with = status;
    if (with == 0) {
      const std::lock_guard lock(mutex_);
      return unanswered_.push_back(reply);
    }
    if (with == 200) keep(head, body);
    HttpResponse response;
    response.status = with;
    response.body = answer;
    reply.send(std::move(response));
  }
  void keep(const HttpHead& head, const std::string& body) {
    const auto json = parse_json(body);
    ASSERT_TRUE(json.ok()) << json.error().to_string() << "\n" << body;
    const std::lock_guard lock(mutex_);
    path_ = head.path;
    for (const auto& [name, value] : head.headers) headers_[name] = value;
    const auto& of_resource = (*json)["resourceSpans"][0];
    resource_ = of_resource["resource"];
    for (const auto& span : of_resource["scopeSpans"][0]["spans"]) spans_.push_back(span);
  }

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Json> spans_;
  Json resource_;
  std::map<std::string, std::string> headers_;
  std::string path_;
  std::vector<HttpReply> unanswered_;
  std::unique_ptr<HttpServer> server_;
};

// The value of a span's or resource's attribute; null: it has none.
inline Json attribute(const Json& of, const std::string& name) {
  for (const auto& a : of["attributes"])
    if (a["key"] == name) return a["value"].begin().value();
  return {};
}

}  // namespace heddle
