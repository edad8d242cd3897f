// Streams between simulated processes (heddle/base/simulation.h): messages arrive late, in order on a stream and in
// any order between streams; links are cut, in one direction or both; connections break; processes crash.
//
// A message of a stream whose link is cut waits and arrives afterwards, as TCP sends again. The end of a process
// reaches the other ends of its streams as a message does.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/simulation.h"
#include "workers/worker_network.h"

namespace heddle {

// What the messages of the sessions are checked by. `stream`: a number of the session.
class SessionWatcher {
 public:
  virtual ~SessionWatcher() = default;
  // A worker's announcement has reached the server's bus.
  virtual void server_hears(Simulation::Process worker, const std::string& address) = 0;
  virtual void server_calls(uint64_t stream, const std::string& address) = 0;
  virtual void server_sends(uint64_t stream, const worker::ToWorker& message) = 0;
  virtual void worker_gets(uint64_t stream, const worker::ToWorker& message) = 0;
  virtual void server_gets(uint64_t stream, const worker::FromWorker& message) = 0;
  virtual void worker_sends(uint64_t stream, const worker::FromWorker& message) = 0;
  virtual void worker_ends(uint64_t stream) = 0;
  virtual void server_ends(uint64_t stream) = 0;     // nothing more reaches the server
  virtual void server_is_told(uint64_t stream) = 0;  // that the session has ended
};

struct SimulatedPacket {
  enum class Kind : uint8_t { kMessage, kClose, kStatus, kReset };
  Kind kind = Kind::kMessage;
  int64_t at = 0;
  std::string bytes;
  grpc::Status status;
};

// A stream. Its ends: 0 the called one, 1 the caller.
struct SimulatedPipe {
  struct Half {
    std::deque<SimulatedPacket> packets;
    int64_t last_at = 0;
    size_t bytes = 0;
  };
  uint64_t id = 0;
  Simulation::Process process[2] = {};
  bool connected = false;
  bool dead[2] = {};  // the end's process has crashed, or the connection has broken
  Half to[2];         // [end] what is on its way there
};

class SimulatedNetwork final : public WorkerNetwork {
 public:
  struct Delays {
    int64_t least_ns = 50'000, most_ns = 500'000;
    double spikes = 0;  // the chance of a longer delay
    int64_t longest_ns = 100'000'000;
  };

  std::unique_ptr<SessionCall> session(const std::string& address, const WorkerSecurity& security) override;
  std::unique_ptr<FeatureLink> feature_link(const std::string& address,
                                            const WorkerSecurity& security) override;
  Result<std::unique_ptr<WorkerListener>> listen(const std::string& host, int port,
                                                 const WorkerSecurity& security,
                                                 WorkerCalled& called) override;

  Delays delays;
  // On their way in one direction of a stream; more fails the run.
  size_t most_stream_bytes = SIZE_MAX, most_stream_messages = SIZE_MAX;
  SessionWatcher* watcher = nullptr;

  // Nothing that one sends reaches the other before `until`.
  void cut(Simulation::Process from, Simulation::Process to, int64_t until);
  void heal_all();
  void break_connections(Simulation::Process a, Simulation::Process b);
  // The process's streams end, and nobody finds its listeners any more. With its host: no other end hears of it.
  void crash(Simulation::Process process, bool with_host);
  int64_t cut_until(Simulation::Process from, Simulation::Process to) const;
  int64_t delay();
  // A thread of the process that has just read a message stands still until then, here or some steps later.
  void hold_up_reader(Simulation::Process process, int64_t until) { readers_held_[process] = until; }
  void message_read();  // by the thread that calls it

  // For the ends.
  struct Listening {
    Simulation::Process process = 0;
    WorkerCalled* called = nullptr;
    size_t open = 0;  // calls
    std::vector<std::shared_ptr<SimulatedPipe>> pipes;
  };
  std::shared_ptr<SimulatedPipe> new_pipe();
  void push(SimulatedPipe& pipe, int end, SimulatedPacket packet);
  // When the next packet to this end can be read; INT64_MAX: there is none.
  int64_t next_at(const SimulatedPipe& pipe, int end) const;
  SimulatedPacket pop(SimulatedPipe& pipe, int end);
  // Finds who listens there; waits. Null: nobody, or nobody answers within `patience`.
  std::shared_ptr<Listening> connect(SimulatedPipe& pipe, const std::string& address, int64_t patience);
  void forget(const std::string& address, const std::shared_ptr<Listening>& listening);

 private:
  std::map<std::string, std::shared_ptr<Listening>> listening_;  // by address
  std::map<std::pair<Simulation::Process, Simulation::Process>, int64_t> cuts_;
  std::vector<std::weak_ptr<SimulatedPipe>> pipes_;
  uint64_t pipe_count_ = 0;
  std::map<Simulation::Process, int64_t> readers_held_;
};

}  // namespace heddle
