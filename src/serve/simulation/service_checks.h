// What must hold while a service is simulated; each check fails the run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "simulated_network.h"

namespace heddle {

// The messages between servers and workers.
class SessionChecks final : public SessionWatcher {
 public:
  using Process = Simulation::Process;
  void name_process(Process process, const std::string& name) { names_[process] = name; }

  void server_sends(uint64_t stream, const worker::ToWorker& message) override;
  void worker_gets(uint64_t stream, const worker::ToWorker& message) override;
  void server_gets(uint64_t stream, const worker::FromWorker& message) override;
  void server_ends(uint64_t stream) override;

  // Of the worker's runs, those whose end has reached this server.
  uint64_t runs(Process server, const std::string& worker) const;

 private:
  using Device = std::pair<uint64_t, uint32_t>;  // generation, virtual device
  struct Session {
    Process server = 0;
    std::string worker;
    std::set<Device> roles;
    std::map<Device, uint64_t> running;  // attempt
    std::set<uint64_t> sent, arrived, ended;
    bool over = false;
  };
  void check_not_elsewhere(uint64_t stream, const Session& session, Device device) const;
  [[noreturn]] static void fail(uint64_t stream, const std::string& why);

  std::map<Process, std::string> names_;
  std::map<uint64_t, Session> sessions_;
  std::map<Process, std::set<uint64_t>> attempts_;  // that a server has sent
  std::map<std::pair<Process, std::string>, uint64_t> runs_;
};

// The requests and their answers, by server.
class RequestChecks {
 public:
  using Process = Simulation::Process;
  // Returns the request's number.
  uint64_t sent(Process server, uint64_t digest, int64_t deadline);
  // `digest` of the answer; 0: the answer is an error, or has none.
  void answered(uint64_t request, bool ok, uint64_t digest);
  // The answers of a server that has crashed reach nobody.
  void crashed(Process server);
  // A request without an answer at this time after its deadline: none. In the end: at all.
  void check_answered(int64_t grace_ns) const;

  uint64_t requests(Process server) const;
  uint64_t answers(Process server) const;  // that are no error
  uint64_t sent() const { return requests_.size(); }
  uint64_t in_time() const { return in_time_; }
  // The part of the requests since then that were answered by their deadlines; 1: there were none.
  double attainment(int64_t since_ns) const;

 private:
  struct Request {
    Process server = 0;
    uint64_t digest = 0;
    int64_t at = 0, deadline = 0;
    bool answered = false, ok = false, in_time = false;
  };
  std::vector<Request> requests_;
  std::set<Process> crashed_;
  std::set<uint64_t> open_;
  uint64_t in_time_ = 0;
};

}  // namespace heddle
