// The program as a server with workers, as its users run it, and a fleet that it serves in two partitions.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/fleet/fleet.h"
#include "serve_support.h"

namespace heddle {

// Each class is fast on one of the two blocks: pipelines of a front and a back partition, `count` devices
// each.
inline Fleet front_and_back(int64_t count) {
  Fleet fleet;
  fleet.name = "two-parts";
  fleet.classes = {{.name = "front", .count = count, .nic_bytes_per_s = 1e9},
                   {.name = "back", .count = count, .nic_bytes_per_s = 1e9}};
  FleetModel net;
  net.name = "net";
  net.blocks = 2;
  net.cut_bytes = {1000, 300'000, 1000};
  net.slo_us = 1e6;
  net.latency_us = {{{{20'000, 400'000}}}, {{{400'000, 20'000}}}};
  fleet.models = {net};
  return fleet;
}

// A child process; killed with this object, and with the test.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    out_ = ends[0];
    std::vector<char*> argv;
    for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    ::close(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // The next line that it prints; empty at its end.
  std::string line() const {
    std::string text;
    char c;
    while (::read(out_, &c, 1) == 1 && c != '\n') text += c;
    return text;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

// `heddle worker` for the server whose workers' port this is.
inline std::unique_ptr<Process> worker_process(int port, const std::string& name, const std::string& devices,
                                               const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      HEDDLE_PROGRAM, "worker", "--quiet", "--name", name, "--connect", "127.0.0.1:" + std::to_string(port),
      "--devices",    devices};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return std::make_unique<Process>(arguments);
}

// A port of this test process's own, below those that the system hands out.
inline int own_port() { return 20000 + static_cast<int>(::getpid() % 12000); }

class ServeFolder {
 public:
  ServeFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle-workers-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ServeFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ServeFolder(const ServeFolder&) = delete;
  ServeFolder& operator=(const ServeFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A served fleet with the flags given; ready once it is there.
class ServedFleet {
 public:
  ServedFleet(const Fleet& fleet, const std::vector<std::string>& flags) {
    std::ofstream(folder_.file("fleet.json")) << to_json(fleet).dump();
    std::vector<std::string> arguments = {HEDDLE_PROGRAM,
                                          "serve",
                                          folder_.file("fleet.json"),
                                          "--port",
                                          "0",
                                          "--grpc-port",
                                          "0",
                                          "--json",
                                          "--quiet",
                                          "--drain",
                                          "3"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    process_ = std::make_unique<Process>(arguments);
  }
  // Waits until it serves.
  bool serves() {
    const auto json = parse_json(process_->line());
    if (!json.ok() || !json->contains("port")) return false;
    port_ = (*json)["port"];
    grpc_port_ = json->value("grpc_port", 0);
    return true;
  }
  int port() const { return port_; }
  int grpc_port() const { return grpc_port_; }
  Process& process() const { return *process_; }
  Json status() const {
    const auto json = parse_json(RawClient(port_).ask("GET", "/v2/status").body);
    return json.ok() ? *json : Json::object();
  }
  // A worker's state; null where there is none of the name.
  Json worker(const std::string& name) const {
    const Json now = status();
    for (const auto& w : now["workers"])
      if (w["name"] == name) return w;
    return {};
  }
  bool is_connected(const std::string& name) const {
    const auto w = worker(name);
    return w.is_object() && w["state"] == "connected" && w["virtual_devices"] > 0;
  }

 private:
  const ServeFolder folder_;
  std::unique_ptr<Process> process_;
  int port_ = 0, grpc_port_ = 0;
};

}  // namespace heddle
