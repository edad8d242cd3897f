// Servers of one fleet that share their state, and workers for them, as their users run them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "heddle/serve/load.h"
#include "serve_process.h"

namespace heddle {

class StandbyServers : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_.file("fleet.json")) << to_json(front_and_back(2)).dump(); }
  // Servers with the same `state` stand by for each other.
  std::unique_ptr<Process> server(int number, const std::string& state = "state") const {
    const int base = own_port() + 10 * number;
    std::vector<std::string> command = {HEDDLE_PROGRAM,
                                        "serve",
                                        folder_.file("fleet.json"),
                                        "--port",
                                        std::to_string(base),
                                        "--grpc-port",
                                        "0",
                                        "--lease",
                                        "0.5",
                                        "--name",
                                        "server-" + std::to_string(number),
                                        "--json",
                                        "--quiet",
                                        "--drain",
                                        "1"};
    if (bus_.empty())
      command.insert(command.end(),
                     {"--worker-port", std::to_string(base + 1), "--state", folder_.file(state)});
    else
      command.insert(command.end(), {"--bus", bus_, "--state", bus_});
    return std::make_unique<Process>(command);
  }
  static LoadTarget target(int number) {
    LoadTarget target;
    target.host = "127.0.0.1";
    target.port = own_port() + 10 * number;
    return target;
  }
  static int status_of(int number, const std::string& path) {
    const auto answer = ask_http(target(number), "GET", path, "", 5);
    return answer.ok() ? answer->status : 0;
  }
  static bool ready(int number) { return status_of(number, "/v2/health/ready") == 200; }
  // It announces itself to these servers, or on the bus; by default it has all devices.
  std::unique_ptr<Process> worker(const std::string& name, const std::vector<int>& to,
                                  const std::string& devices = "front=2,back=2") const {
    std::vector<std::string> command = {HEDDLE_PROGRAM, "worker", "--devices", devices,
                                        "--name",       name,     "--quiet"};
    if (!bus_.empty()) command.insert(command.end(), {"--bus", bus_, "--lease", "0.5"});
    for (const int number : to)
      command.insert(command.end(),
                     {"--connect", "127.0.0.1:" + std::to_string(own_port() + 10 * number + 1)});
    return std::make_unique<Process>(command);
  }
  const ServeFolder folder_;
  std::string bus_;  // of NATS, for state and workers; empty: neither
};

}  // namespace heddle
