// The simulated processes of a service: a server with its bus, pool and control, and workers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/succession.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "service_checks.h"
#include "simulated_files.h"
#include "simulated_network.h"
#include "simulated_store.h"

namespace heddle {

// A simulated process: its first thread opens it, waits for stop() and closes it.
class SimulatedProcess {
 public:
  explicit SimulatedProcess(const std::string& name) : name(name) {}
  virtual ~SimulatedProcess() = default;

  const std::string name;
  const Simulation::Process process = Simulation::current().new_process(name);
  bool ready = false, crashed = false, closing = false, ended = false;

  void start() {
    auto& simulation = Simulation::current();
    simulation.start(process, [this, &simulation] {
      open();
      ready = !stopping_ && !replaced();
      while (!stopping_ && !replaced()) simulation.wait(&stopping_, next_look());
      ready = false;
      closing = true;
      close();
      ended = true;
      simulation.wake(&ended);
    });
  }
  virtual void stop() {
    stopping_ = true;
    Simulation::current().wake(&stopping_);
  }
  void join() {
    while (!ended) Simulation::current().wait(&ended, INT64_MAX);
  }
  // It does nothing any more; its memory is freed at the simulation's end, by thaw() and stop().
  void crash(SimulatedNetwork& network, bool with_host) {
    crashed = true;
    ready = false;
    network.crash(process, with_host);
    Simulation::current().freeze(process, INT64_MAX);
  }

 protected:
  virtual void open() = 0;
  virtual void close() = 0;
  // By another one: it ends by itself. Asked at the times of next_look().
  virtual bool replaced() const { return false; }
  virtual int64_t next_look() const { return INT64_MAX; }
  bool stopping_ = false;
};

// With 1 to 200 random bytes.
InferRequest payload_request(const std::string& model, Random& random);
// What the server answers it with; 0: the answer is an error, or has none.
uint64_t digest_of(const Result<InferResponse>& answer);

struct SimulatedService {
  Fleet fleet;
  FleetPlan plan;
  bool with_workers = true;
  double lease_s = 1;
  size_t max_queued = 100'000;
  size_t max_memory = SIZE_MAX;  // of all requests' outputs
  // Where servers keep their lease and state, so that one leads: a store on another host, or a folder of theirs. Both
  // null: there is one server, which keeps nothing.
  std::shared_ptr<SimulatedDisk> disk;
  std::shared_ptr<SimulatedDrive> drive;
  std::shared_ptr<StoreLedger> ledger;
  bool has_store() const { return disk || drive; }
};

class SimulatedServer final : public SimulatedProcess {
 public:
  SimulatedServer(const std::string& name, const SimulatedService& what, SimulatedNetwork& network)
      : SimulatedProcess(name), what_(what), network_(network) {
    if (what.drive) files_ = std::make_unique<SimulatedFiles>(*what.drive);
  }
  void stop() override {
    leaves_.cancel();
    SimulatedProcess::stop();
  }
  void crash_files() {
    if (files_) files_->crash();
  }
  uint64_t term() const { return term_; }  // in which it leads; 0: it does not
  // As by HTTP: the server does not end before it has answered.
  Json status();

  std::shared_ptr<WorkerBus> bus;  // null: not open yet
  std::shared_ptr<WorkerPool> pool;
  InferService service;
  std::unique_ptr<FleetControl> control;

 private:
  void open() override;
  void close() override;
  bool replaced() const override { return succession_ && succession_->lost(); }
  int64_t next_look() const override;
  Result<std::shared_ptr<SharedStore>> open_store();
  bool lead();
  Result<std::unique_ptr<FleetControl>> make_control(const FleetControlOptions& options);

  const SimulatedService what_;
  SimulatedNetwork& network_;
  const CancelToken leaves_;
  std::unique_ptr<SimulatedFiles> files_;   // null: it keeps none
  std::unique_ptr<Succession> succession_;  // null: no other server
  uint64_t term_ = 0;
  int asked_ = 0;  // who waits for its status
};

// What workers see of a server's bus: calls that take their time, or fail when no answer comes within the lease.
class SimulatedAnnouncer final : public Announcer {
 public:
  SimulatedAnnouncer(SimulatedNetwork& network, const std::shared_ptr<SimulatedServer>& server,
                     double lease_s)
      : network_(network), server_(server), lease_s_(lease_s) {}
  Status announce(const std::string& key, const std::string& value) override {
    return call([&network = network_, key, value, me = Simulation::current().process()](WorkerBus& bus) {
      // Before the pool can hear of it: what the pool does then is known to the watcher only afterwards.
      network.watcher->server_hears(me, worker_entry_from_text(key, value).value().address);
      return bus.announce(key, value);
    });
  }
  Status withdraw(const std::string& key) override {
    return call([key](WorkerBus& bus) { return bus.withdraw(key); });
  }
  double lease_s() const override { return lease_s_; }
  bool cut_off = false;  // its process has crashed

 private:
  Status call(std::function<Status(WorkerBus&)> what);
  SimulatedNetwork& network_;
  const std::shared_ptr<SimulatedServer>& server_;  // the present one
  const double lease_s_;
};

class SimulatedWorker final : public SimulatedProcess {
 public:
  static constexpr double kMostDrain_s = 3;
  // It announces itself to each of the servers, which may change.
  SimulatedWorker(const WorkerOptions& options, SimulatedNetwork& network,
                  std::span<const std::shared_ptr<SimulatedServer>> servers, double lease_s)
      : SimulatedProcess(options.name),
        options(options),
        network_(network),
        servers_(servers),
        lease_s_(lease_s) {}

  const WorkerOptions options;
  std::unique_ptr<Worker> worker;
  void cut_off() {
    for (auto* announcer : announcers_) announcer->cut_off = true;
  }

 private:
  void open() override;
  void close() override {
    if (worker) worker->drain(Simulation::current().random().uniform(0, kMostDrain_s));
    worker = nullptr;
    announcer_ = nullptr;
  }

  SimulatedNetwork& network_;
  const std::span<const std::shared_ptr<SimulatedServer>> servers_;
  const double lease_s_;
  std::vector<SimulatedAnnouncer*> announcers_;  // one for each server
  std::unique_ptr<Announcer> announcer_;         // all of them
};

}  // namespace heddle
