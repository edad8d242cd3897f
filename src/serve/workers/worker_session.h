// The worker's end of a server's session: what the server asks for, carried out on this worker's devices.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feature_maps.h"
#include "heddle/base/sync.h"
#include "heddle/serve/worker.h"
#include "machine/part_devices.h"
#include "plane/timed_devices.h"
#include "protocol_version.h"
#include "worker_network.h"
#include "worker_proof.h"

namespace heddle {

// What a server may make a worker keep.
struct WorkerLimits {
  size_t open_inputs = 4096;                 // batches whose inputs have come and whose run was not asked for
  uint64_t input_bytes = uint64_t{1} << 30;  // of these, and of one batch, where the model is computed
  uint64_t unsent_bytes = uint64_t{2} << 30;  // that the server has not read
  size_t open_plans = 64;
};

// What the sessions of a worker share; they follow one another.
struct WorkerResources {
  explicit WorkerResources(const WorkerOptions& options)
      : name(options.name),
        program(options.program),
        clock(options.clock),
        devices(options.slowdown, options.timed_run_error),
        token(options.security.token),
        share_cores(options.share_cores),
        network(options.network ? options.network : grpc_worker_network()),
        sender(*network, options.security),
        computing({options.device_names, options.models, options.slowdown, options.cluster}) {}
  const std::string name, program;
  int64_t (*const clock)();
  TimedDevices devices;
  const std::string token;
  const bool share_cores;
  WorkerLimits limits;
  FeatureMaps maps;
  const std::shared_ptr<WorkerNetwork> network;
  FeatureSender sender;
  PartDevices computing;  // destroyed before the maps that its runs write to
  RareErrors errors;
  std::string address;               // the worker's own, as other processes know it
  std::atomic<bool> leaving{false};  // runs that have not begun are refused
  std::atomic<uint64_t> sessions{0}, runs{0}, rows{0}, maps_sent{0}, maps_received{0}, map_bytes_received{0};
};

class WorkerSession final : public StreamListener, public std::enable_shared_from_this<WorkerSession> {
 public:
  WorkerSession(WorkerResources& resources, std::unique_ptr<CalledSession> stream)
      : stream_(std::move(stream)),
        resources_(resources),
        proof_({resources.token, kSessionCall, resources.address}) {}

  // Begins to read. The session keeps itself alive until stream_ended().
  void begin();
  // Work in progress goes on; admit() of the next session drops it.
  void end(const grpc::Status& status);
  bool open() const { return open_; }
  void opened();  // unless it has ended since
  // Tells the server that the worker will end. Runs are refused from its answer on, at once where it knows no answer.
  void leave();
  // True when nothing runs, travels or waits to be sent.
  bool idle() const;
  uint64_t epoch() const { return epoch_; }
  void add_counts(WorkerCounters& to) const;
  // True after two leases without a message of the server, which then counts as lost.
  bool is_silent() const;
  // Called once, after the handshake: calls opened(), or tells why the server is refused.
  std::function<std::string(WorkerSession&)> admit;
  std::atomic<uint64_t> number{0};  // of the worker's sessions, from 1, once it is admitted

  void read_done(bool ok) override;
  void write_done(bool ok) override;
  void stream_ended(const grpc::Status& status) override;

 private:
  bool take(const worker::ToWorker& message, grpc::Status& refusal);
  bool handshake(const worker::ToWorker& message, grpc::Status& refusal);
  void load(const worker::Load& load);
  void loaded(const worker::Load& load, const std::vector<LoadedRole>& computing);
  // The inputs of a batch's requests that have arrived, by row.
  struct Inputs {
    std::vector<uint64_t> digests;      // so far
    std::vector<std::string> payloads;  // of a model that is computed
    uint64_t bytes = 0;                 // of these
    bool too_large = false;             // none is kept
  };
  bool take(const worker::Input& input, grpc::Status& refusal);
  Inputs take_inputs(uint64_t attempt);  // none where nothing has come
  void run(const worker::Run& run);
  void run_timed(const worker::Run& run, const worker::Role& role, Inputs in);
  void compute(const worker::Run& run, const worker::Role& role, const PartRole& part, Inputs in);
  void transfer(const worker::Transfer& transfer);
  void forget_closed(const worker::Load& load);  // with the lock
  struct DeviceRole {
    worker::Role role;
    PartRole part;  // of one that computes
  };
  std::optional<DeviceRole> role(uint64_t generation, uint32_t device);
  void begin_step(uint64_t attempt);
  void add_devices(worker::Pong& pong);
  void send(worker::FromWorker message);
  void end_locked(const grpc::Status& status);
  void send_outputs(uint64_t attempt, const std::vector<PartRow>& rows);
  void done(uint64_t attempt, uint64_t generation, TimeNs measured, const std::string& error,
            const std::vector<uint64_t>& digests = {}, bool no_map = false);

  const std::unique_ptr<CalledSession> stream_;
  WorkerResources& resources_;
  worker::ToWorker incoming_;

  // Of the reading side, one message at a time.
  CalledProof proof_;
  bool begun_ = false, challenged_ = false;
  std::atomic<uint32_t> server_version_{0};
  std::atomic<bool> leaves_{false};    // and has said so
  std::map<uint64_t, Inputs> inputs_;  // [attempt]
  uint64_t input_bytes_ = 0;
  std::atomic<uint64_t> open_inputs_{0};  // entries of inputs_, for other threads
  std::atomic<uint64_t> epoch_{0};
  std::atomic<int64_t> heard_ns_{0}, patience_ns_{0};
  std::atomic<bool> open_{false};

  mutable Mutex mutex_;                                       // guards what follows
  std::set<uint64_t> under_way_;                              // attempts
  std::map<uint64_t, std::map<uint32_t, DeviceRole>> roles_;  // [generation][device]
  std::deque<worker::FromWorker> outbox_;
  uint64_t unsent_bytes_ = 0;  // of these
  bool answered_ = false, writing_ = false, ended_ = false;
  std::shared_ptr<WorkerSession> self_;  // until stream_ended()
};

}  // namespace heddle
