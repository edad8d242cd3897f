// Serving, whatever the transport: models and their states, inference through a data plane, statistics,
// metrics. One object serves REST, gRPC and tests alike. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/base/sync.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/serve/infer_message.h"
#include "heddle/serve/live_plane.h"
#include "heddle/serve/served_model.h"
#include "heddle/serve/tracer.h"

namespace heddle {

// How many of the plane's models stand for one: its buckets.
inline uint32_t plane_models(const ServedModel& model) {
  return model.varying ? static_cast<uint32_t>(model.varying->buckets.size()) : 1;
}

// What is served at one time. Models are in the order of the plane's deployment, where those of varying shapes
// have one for each bucket.
struct Generation {
  Fleet fleet;
  FleetPlan plan;
  std::vector<std::shared_ptr<const ServedModel>> models;
  std::unique_ptr<LivePlane> plane;  // null: no model is loaded
};

// Of one model, since the server's start: Triton's statistics, and the outcomes of rows.
struct ModelStatisticsRecord {
  struct Part {
    uint64_t count = 0, ns = 0;
    void add(double us) {
      ++count;
      ns += static_cast<uint64_t>(us > 0 ? us * 1e3 : 0);
    }
  };
  Part success, fail, queue, compute;  // requests
  uint64_t rows = 0;                   // of successful requests
  uint64_t requests[kOutcomes] = {};   // by the worst outcome of their rows
  int64_t last_ms = 0;                 // since 1970, of the last inference
  std::map<uint32_t, Part> batches;    // by rows that ran together
  // Of models of varying shapes, of successful requests.
  uint64_t input_bytes = 0, run_bytes = 0;  // as they came, and as they ran: the rest is padding
  std::map<std::string, uint64_t> buckets;  // requests by bucket
  static constexpr double kBuckets_s[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
  uint64_t latency[std::size(kBuckets_s) + 1] = {};
  double latency_s = 0;
};

// Of the sessions of all models together.
struct SessionLimits {
  size_t sessions = 10'000;          // at once
  int64_t bytes = int64_t{1} << 30;  // of their states
  size_t waiting = 64;               // requests behind the one of their session that runs
};
// Of one model: how many are open now, and what happened to them since the server's start.
struct SessionCounters {
  uint64_t open = 0, waiting = 0, bytes = 0;  // waiting: requests behind another one of their session
  uint64_t begun = 0, ended = 0;
  uint64_t expired = 0;  // by time
  uint64_t dropped = 0;  // with their model
  uint64_t refused = 0;  // starts, by the limits
};

// Where errors of an answer stand in the protocols: kInvalidInput 400, kNotFound 404, kInfeasible 504 (the
// deadline passed or cannot be met), kCancelled 503 (the server is full, changing or stopping), others 500.
int http_status(Code code);

class MemoryBudget;
class Sessions;
class SessionTurn;
struct WaitingRequest;

class InferService {
 public:
  using Done = std::function<void(Result<InferResponse>)>;

  // Loads or unloads one model of the repository, and calls back when it is done, on any thread; set by
  // the owner of the repository. Returns at once.
  struct Repository {
    using OnDone = std::function<void(const Status&)>;
    std::function<void(const std::string&model, OnDone)> load, unload;
    // name, version, state (READY or UNAVAILABLE), reason
    struct Entry {
      std::string name, version, state, reason;
    };
    std::function<std::vector<Entry>()> index;
  };

  InferService();
  ~InferService();  // drains
  InferService(const InferService&) = delete;
  InferService& operator=(const InferService&) = delete;

  void set_repository(Repository repository) { repository_ = std::move(repository); }
  const Repository& repository() const { return repository_; }
  // More for status(), such as a fleet's workers: members of a JSON object. Set before anybody asks.
  void set_more_status(std::function<Json()> more) { more_status_ = std::move(more); }
  // More for metrics(): whole families. Set before anybody asks.
  void set_more_metrics(std::function<std::string()> more) { more_metrics_ = std::move(more); }
  void set_session_limits(const SessionLimits& limits);
  // Most bytes of all requests' outputs, and of inputs that padding makes larger. Until it is set, any number.
  void set_max_memory(size_t bytes);
  // Traces requests from here on; outlives the service. Set before anybody asks. Null: nothing is traced.
  void set_tracer(Tracer* tracer) { tracer_ = tracer; }
  Tracer* tracer() const { return tracer_; }
  // Requests per second that clients' way to the service carries: planned rates are together at most that. 0: any
  // number.
  void set_carried_rate(double per_s) { carried_per_s_ = per_s; }
  // The repository's; without one what is served.
  std::vector<Repository::Entry> index() const;

  // Cuts over: what the old plane has not begun goes to the new one by the models' names (of models that are
  // gone it is withdrawn), what runs is waited for. Meanwhile new requests wait, but no caller of infer() does.
  // False: the service is stopping, and the old plane stays.
  bool serve(std::unique_ptr<Generation> next);
  // Begins nothing more; waits up to `seconds` for what runs. What is left then fails.
  void stop(double seconds);

  // `done` is called exactly once, possibly within this call, else on a thread of the plane: must not block.
  void infer(InferRequest request, Done done);
  // A request that cannot be read: it counts as an invalid one of the model, if there is one of this name.
  void count_unreadable(const std::string& model) const;

  bool live() const { return !stopping_; }
  bool ready() const;  // all that was asked for is being served
  // An error names the models that there are. An empty version is any.
  Result<std::shared_ptr<const ServedModel>> model(const std::string& name, const std::string& version) const;
  std::vector<std::shared_ptr<const ServedModel>> models() const;
  // Requests per second that the current plan and the way to it sustain; 0 for a model that it does not have.
  double planned_rate(const std::string& model) const;
  ModelStatisticsRecord statistics(const std::string& model) const;
  // Of every model that was ever asked for by a name that existed.
  std::map<std::string, ModelStatisticsRecord> all_statistics() const;
  // Of models with state.
  std::map<std::string, SessionCounters> sessions() const;

  // Prometheus's text format 0.0.4: requests by outcome, latencies, queues, batch sizes, use per pool, predicted
  // against measured times.
  std::string metrics() const;
  // The pools of the current plan, and their runs since it began.
  struct PoolUse {
    PoolRole role;
    LivePoolCounters counters;
  };
  std::vector<PoolUse> pools() const;
  // Models, pools and their use, for the dashboard and `server status`.
  Json status() const;

 private:
  struct Call;
  struct Row;
  struct Record {
    mutable Mutex mutex;
    ModelStatisticsRecord record;
  };
  std::shared_ptr<Record> record_of(const std::string& model) const;
  void count(const std::string& model, Outcome outcome) const;
  // `turn`: of a request that waited for it in its session, else null. `was_held`: it is not held again. Moves what
  // `request` holds into what answers it.
  void begin(WaitingRequest& request, std::unique_ptr<SessionTurn> turn, bool was_held);
  void begin_in_turn(WaitingRequest request, std::unique_ptr<SessionTurn> turn, bool was_held = false);
  // Those that came during a cut-over, until none is left.
  void begin_held();
  // Requests that `old` had not begun, to the current plane. With the gate held, exclusively.
  void take_over(const Generation* old, std::span<LiveRequest* const> pending);
  Error no_model(const std::string& name) const;
  // All requests per second that the current plan's devices sustain, and the part of them that the way to the service
  // carries. With the gate held.
  double devices_rate() const;
  double carried_part() const;

  Mutex serving_;             // of serve(), for which stop() waits
  mutable SharedMutex gate_;  // exclusive while the plane changes
  // Requests are held: what the plane runs is waited for, or earlier ones are still held. Set with the gate held,
  // exclusively; cleared with held_mutex_.
  std::atomic<bool> holding_{false};
  Mutex held_mutex_;
  using Held = std::pair<WaitingRequest, std::unique_ptr<SessionTurn>>;
  std::vector<Held> held_;
  std::unique_ptr<Generation> current_;
  std::map<std::string, uint32_t> index_;  // of the current models
  std::vector<uint32_t> places_;           // [model]: its first one in the plane
  mutable Mutex records_mutex_;
  mutable std::map<std::string, std::shared_ptr<Record>> records_;
  Repository repository_;
  std::function<Json()> more_status_;
  std::function<std::string()> more_metrics_;
  Tracer* tracer_ = nullptr;
  std::atomic<double> carried_per_s_{0};
  const std::shared_ptr<MemoryBudget> memory_;
  const std::unique_ptr<Sessions> sessions_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> generations_{0};
  std::atomic<int64_t> started_ns_{0};
};

}  // namespace heddle
