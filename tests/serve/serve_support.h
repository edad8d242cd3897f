// A server in the test's own process, and a client that sends exactly the bytes it is given.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/serve/http_message.h"
#include "wheel_file.h"

namespace heddle {

class RawClient {
 public:
  explicit RawClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience = {20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // the server has closed: its answer is still there to be read
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  void finish_sending() const { ::shutdown(fd_, SHUT_WR); }

  struct Answer {
    int status = 0;  // 0: the connection ended without one
    HttpHeaders headers;
    std::string body;
    std::string header(const std::string& name) const {
      for (const auto& h : headers)
        if (h.first == name) return h.second;
      return "";
    }
  };
  Answer receive(bool head_only = false) {
    Answer answer;
    for (;;) {
      if (const auto end = head_end(in_)) {
        const auto head = read_http_answer_head(std::string_view(in_).substr(0, *end));
        if (!head.ok()) return answer;
        const size_t body = head_only ? 0 : head->content_length.value_or(0);
        if (in_.size() >= *end + body) {
          answer.status = head->status;
          answer.headers = head->headers;
          answer.body = in_.substr(*end, body);
          in_.erase(0, *end + body);
          return answer;
        }
      }
      char buffer[65536];
      const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return answer;
      in_.append(buffer, static_cast<size_t>(n));
    }
  }
  // Reads so many bytes and throws them away; fewer: the server has closed the connection.
  size_t receive_some(size_t bytes) const {
    std::vector<char> buffer(bytes);
    const auto n = ::recv(fd_, buffer.data(), bytes, MSG_WAITALL);
    return n < 0 ? 0 : static_cast<size_t>(n);
  }
  // Nothing more comes: the server has closed the connection.
  bool closed() {
    char c;
    return in_.empty() && ::recv(fd_, &c, 1, 0) == 0;
  }

  Answer ask(const std::string& method, const std::string& path, const std::string& body = "",
             const std::string& headers = "") {
    send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
    return receive(method == "HEAD");
  }

 private:
  int fd_;
  bool connected_ = false;
  std::string in_;
};

// Waits until it holds, at most 20 s.
template <class Holds>
bool eventually(const Holds& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace heddle
