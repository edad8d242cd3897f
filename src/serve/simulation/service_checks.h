// What must hold while a service is simulated; each check fails the run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulated_network.h"

namespace heddle {

inline constexpr int64_t kMs = 1'000'000;

// Until when processes were stopped or slowed down, so that what they had to do by some time may be late.
class Disturbances {
 public:
  using Process = Simulation::Process;
  void add(Process process, int64_t until) { until_[process] = std::max(until_[process], until); }
  int64_t until(Process process) const {
    const auto it = until_.find(process);
    return it == until_.end() ? 0 : it->second;
  }
  int64_t slack_ns = 0;  // by which all may be late

 private:
  std::map<Process, int64_t> until_;
};

// The messages between servers and workers.
class SessionChecks final : public SessionWatcher {
 public:
  using Process = Simulation::Process;
  explicit SessionChecks(const Disturbances& disturbances) : disturbances_(disturbances) {}

  void name_process(Process process, const std::string& name);
  void left(Process process) { left_.insert(process); }  // it has crashed, or is stopped

  void server_hears(Process worker, const std::string& address) override;
  void server_calls(uint64_t stream, const std::string& address) override;
  void server_sends(uint64_t stream, const worker::ToWorker& message) override;
  void worker_gets(uint64_t stream, const worker::ToWorker& message) override;
  void worker_sends(uint64_t stream, const worker::FromWorker& message) override;
  void worker_ends(uint64_t stream) override;
  void server_gets(uint64_t stream, const worker::FromWorker& message) override;
  void server_ends(uint64_t stream) override;
  void server_is_told(uint64_t stream) override;

  // No worker keeps a session whose server has been silent for so long; each that announces itself is called at once.
  void check_times(int64_t silence_ns) const;

  // Of the worker's runs, those whose end has reached this server.
  uint64_t runs(Process server, const std::string& worker) const;
  // Of the worker process's runs, those whose end has reached a server; and of these, those of the session that it has.
  uint64_t runs(Process worker) const;
  uint64_t runs_of_session(Process worker) const;
  size_t open_sessions(Process worker) const;  // that it keeps, those that it has not answered yet among them
  // Runs that this server must have given up before they ended.
  uint64_t overdue(Process server) const;

 private:
  using Device = std::pair<uint64_t, uint32_t>;  // generation, virtual device
  struct Running {
    uint64_t attempt = 0;
    int64_t at = 0, patience = 0;
  };
  struct Session {
    Process server = 0, worker_process = 0;
    std::string worker, address;
    std::set<Device> roles;
    std::map<Device, Running> running;
    std::set<uint64_t> ended;
    std::map<uint64_t, int64_t> arrived;  // when, by attempt
    int64_t called = 0, heard = 0;        // by the server; the worker has heard of it
    uint64_t generation = 0;              // of the last run
    uint64_t runs = 0;                    // whose end has reached the server
    int64_t other_generation = 0;         // since when it is another one than before; 0: always
    bool open = false;                    // for the worker
    bool over = false, told = false;      // for the server
  };
  struct Announcement {
    int64_t at = 0;
    std::string worker;
  };
  void check_not_elsewhere(uint64_t stream, const Session& session, Device device) const;
  bool is_overdue(const Session& session, const Running& run) const;
  void check_announcement(Process server, const Announcement& announcement) const;
  [[noreturn]] static void fail(uint64_t stream, const std::string& why);

  const Disturbances& disturbances_;
  std::map<Process, std::string> names_;
  std::map<Process, int64_t> began_;
  std::set<Process> left_;
  std::map<uint64_t, Session> sessions_;
  std::map<std::pair<Process, std::string>, Announcement>
      announced_;                                   // server, address: no call has come since
  std::map<Process, std::set<uint64_t>> attempts_;  // that a server has sent
  std::map<std::pair<Process, std::string>, uint64_t> runs_;
  std::map<Process, uint64_t> overdue_, worker_runs_;
};

// The requests and their answers, by server.
class RequestChecks {
 public:
  using Process = Simulation::Process;
  explicit RequestChecks(const Disturbances& disturbances) : disturbances_(disturbances) {}

  // Returns the request's number.
  uint64_t sent(Process server, uint64_t digest, int64_t deadline);
  // `digest` of the answer; 0: the answer is an error, or has none.
  void answered(uint64_t request, bool ok, uint64_t digest);
  // A client finds no server to send a request to.
  void refused() { refused_.push_back(Simulation::current().now()); }
  // The answers of a server that has crashed reach nobody.
  void crashed(Process server);
  // A request without an answer at this time after its deadline: none. In the end: at all.
  void check_answered(int64_t grace_ns) const;

  // A server that nothing has disturbed since it has a request answers it by so long after its deadline.
  int64_t longest_ns = INT64_MAX;
  // Every answer has its request's digest. Devices timed in the server give none.
  bool have_digests = false;

  size_t open(Process server) const;  // without an answer
  uint64_t requests(Process server) const;
  uint64_t answers(Process server) const;  // that are no error
  uint64_t sent() const { return requests_.size(); }
  uint64_t in_time() const { return in_time_; }
  // The part of the requests since then that were answered by their deadlines, those that found no server among
  // them; 1: there were none.
  double attainment(int64_t since_ns) const;

 private:
  struct Request {
    Process server = 0;
    uint64_t digest = 0;
    int64_t at = 0, deadline = 0;
    bool answered = false, ok = false, in_time = false;
  };
  void check_time(uint64_t request) const;

  const Disturbances& disturbances_;
  std::vector<Request> requests_;
  std::set<Process> crashed_;
  std::set<uint64_t> open_;
  std::vector<int64_t> refused_;  // when
  uint64_t in_time_ = 0;
};

}  // namespace heddle
