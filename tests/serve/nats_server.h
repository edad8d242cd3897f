// A NATS server of a test's own.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "heddle/serve/bus.h"
#include "serve_process.h"

namespace heddle {

// A NATS server of the test's own; null where there is none on this machine.
class NatsServer {
 public:
  // Below the ports that connections get by themselves: other tests have thousands of those.
  NatsServer() : port_(20000 + static_cast<int>(::getpid() % 12000)) {
    if (has_nats() && ::system("command -v nats-server > /dev/null") == 0) start();
  }
  void start() {
    process_ = std::make_unique<Process>(
        std::vector<std::string>{"nats-server", "-js", "-a", "127.0.0.1", "-p", std::to_string(port_), "-sd",
                                 folder_.file("js"), "-l", folder_.file("log")});
  }
  void kill() { process_.reset(); }
  bool available() const { return process_ != nullptr; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  std::unique_ptr<WorkerBus> bus(const BusOptions& options, const std::string& bucket = "fleet") const {
    std::unique_ptr<WorkerBus> out;
    eventually([&] {
      auto bus = nats_bus(url(), bucket, options);
      if (bus.ok()) out = std::move(*bus);
      return out != nullptr;
    });
    return out;
  }

 private:
  const ServeFolder folder_;
  const int port_;
  std::unique_ptr<Process> process_;
};

}  // namespace heddle
