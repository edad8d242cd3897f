// A link between two hosts that a test can cut: a TCP relay that stops passing bytes without closing
// anything, in one direction or both, and passes them on once it is whole again, as the network does.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace heddle {

class Relay {
 public:
  // A worker is called by the server and by other workers; what is cut is told apart by what is called.
  enum class Calls { kAll, kFeatures, kSessions };

  Relay() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto here = loopback(0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    socklen_t size = sizeof here;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size);
    port_ = ntohs(here.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~Relay() {
    quit_ = true;
    changed_.notify_all();
    accepting_.join();
    for (auto& t : threads_) t.join();
    for (const int fd : open_) ::close(fd);
    ::close(listener_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Where it leads; nobody is let in before.
  void lead_to(int port) { to_ = port; }
  void cut(bool there, bool back, Calls calls = Calls::kAll) {
    const std::lock_guard lock(mutex_);
    cut_there_ = there;
    cut_back_ = back;
    calls_ = calls;
  }
  // All bytes take so long from now on, one piece after the other.
  void delay(std::chrono::milliseconds by, Calls calls = Calls::kAll) {
    const std::lock_guard lock(mutex_);
    delay_ = by;
    delayed_ = calls;
  }
  // What was under way goes on; or it never does, as where something between the hosts has forgotten it, and
  // only new connections pass.
  enum class Old { kGoOn, kForgotten };
  void heal(Old old = Old::kGoOn) {
    {
      const std::lock_guard lock(mutex_);
      if (old == Old::kForgotten) forgotten_before_ = connections_;
      cut_there_ = cut_back_ = false;
    }
    changed_.notify_all();
  }

 private:
  struct Connection {
    int caller = -1, called = -1;
    uint64_t number = 0;
    std::atomic<bool> features{false};
  };

  static sockaddr_in loopback(int port) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }
  bool readable(int fd) const {
    pollfd one = {fd, POLLIN, 0};
    while (!quit_)
      if (::poll(&one, 1, 20) > 0) return true;
    return false;
  }
  void accept_all() {
    while (readable(listener_)) {
      const int caller = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (caller < 0) continue;
      const int called = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const auto at = loopback(to_);
      open_.insert(open_.end(), {caller, called});
      if (to_ == 0 || ::connect(called, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
        ::shutdown(caller, SHUT_RDWR);
        continue;
      }
      const auto connection = std::make_shared<Connection>();
      connection->caller = caller;
      connection->called = called;
      connection->number = connections_++;
      threads_.emplace_back([this, connection] { pass(*connection, true); });
      threads_.emplace_back([this, connection] { pass(*connection, false); });
    }
  }
  static bool are_meant(Calls calls, const Connection& c) {
    return calls == Calls::kAll || c.features == (calls == Calls::kFeatures);
  }
  std::chrono::milliseconds delay_of(const Connection& c) {
    const std::lock_guard lock(mutex_);
    return are_meant(delayed_, c) ? delay_ : std::chrono::milliseconds(0);
  }
  bool is_cut(const Connection& c, bool there) const {
    if (!are_meant(calls_, c)) return false;
    return c.number < forgotten_before_ || (there ? cut_there_ : cut_back_);
  }
  void pass(Connection& c, bool there) {
    const int from = there ? c.caller : c.called, to = there ? c.called : c.caller;
    const int at_once = 1;
    ::setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    std::vector<char> bytes(1 << 16);
    while (readable(from)) {
      const auto n = ::recv(from, bytes.data(), bytes.size(), 0);
      // gRPC names what is called in plain letters, once for each connection.
      if (there && n > 0 &&
          std::string_view(bytes.data(), n).find("Worker/Feature") != std::string_view::npos)
        c.features = true;
      {
        std::unique_lock lock(mutex_);
        while (!quit_ && is_cut(c, there)) changed_.wait_for(lock, std::chrono::milliseconds(20));
      }
      if (quit_ || n <= 0) break;
      std::this_thread::sleep_for(delay_of(c));
      ssize_t sent = 0;
      for (ssize_t part = 1; sent < n && part > 0; sent += part)
        part = ::send(to, bytes.data() + sent, static_cast<size_t>(n - sent), MSG_NOSIGNAL);
      if (sent < n) break;
    }
    ::shutdown(to, SHUT_WR);
    ::shutdown(from, SHUT_RD);
  }

  const int listener_;
  int port_ = 0;
  std::atomic<int> to_{0};
  std::atomic<uint64_t> connections_{0};
  std::atomic<bool> quit_{false};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool cut_there_ = false, cut_back_ = false;
  Calls calls_ = Calls::kAll, delayed_ = Calls::kAll;
  std::chrono::milliseconds delay_{0};
  uint64_t forgotten_before_ = 0;
  // Of the accepting thread, and of the end.
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace heddle
