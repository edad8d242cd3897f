// The simulated processes of a service: a server with its bus, pool and control, and workers.
#pragma once

#include <memory>
#include <string>

#include "heddle/fleet/fleet_plan.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "service_checks.h"
#include "simulated_network.h"

namespace heddle {

// A simulated process: its first thread opens it, waits for stop() and closes it.
class SimulatedProcess {
 public:
  explicit SimulatedProcess(const std::string& name) : name(name) {}
  virtual ~SimulatedProcess() = default;

  const std::string name;
  const Simulation::Process process = Simulation::current().new_process(name);
  bool ready = false, crashed = false, ended = false;

  void start() {
    auto& simulation = Simulation::current();
    simulation.start(process, [this, &simulation] {
      open();
      ready = true;
      while (!stopping_) simulation.wait(&stopping_, INT64_MAX);
      ready = false;
      close();
      ended = true;
      simulation.wake(&ended);
    });
  }
  void stop() {
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
  bool stopping_ = false;
};

struct SimulatedService {
  Fleet fleet;
  FleetPlan plan;
  bool with_workers = true;
  double lease_s = 1;
  size_t max_queued = 100'000;
};

class SimulatedServer final : public SimulatedProcess {
 public:
  SimulatedServer(const SimulatedService& what, SimulatedNetwork& network)
      : SimulatedProcess("server"), what_(what), network_(network) {}

  std::shared_ptr<WorkerBus> bus;  // null: not open yet
  std::shared_ptr<WorkerPool> pool;
  InferService service;
  std::unique_ptr<FleetControl> control;

 private:
  void open() override;
  void close() override;

  const SimulatedService what_;
  SimulatedNetwork& network_;
};

// What workers see of a server's bus: calls that take their time, or fail when no answer comes within the lease.
class SimulatedAnnouncer final : public Announcer {
 public:
  SimulatedAnnouncer(SimulatedNetwork& network, std::shared_ptr<SimulatedServer>& server, double lease_s)
      : network_(network), server_(server), lease_s_(lease_s) {}
  Status announce(const std::string& key, const std::string& value) override {
    return call([key, value](WorkerBus& bus) { return bus.announce(key, value); });
  }
  Status withdraw(const std::string& key) override {
    return call([key](WorkerBus& bus) { return bus.withdraw(key); });
  }
  double lease_s() const override { return lease_s_; }
  bool cut_off = false;  // its process has crashed

 private:
  Status call(std::function<Status(WorkerBus&)> what);
  SimulatedNetwork& network_;
  std::shared_ptr<SimulatedServer>& server_;  // the present one
  const double lease_s_;
};

class SimulatedWorker final : public SimulatedProcess {
 public:
  SimulatedWorker(const WorkerOptions& options, SimulatedNetwork& network,
                  std::shared_ptr<SimulatedServer>& server, double lease_s)
      : SimulatedProcess(options.name), options(options), announcer(network, server, lease_s) {}

  const WorkerOptions options;
  SimulatedAnnouncer announcer;
  std::unique_ptr<Worker> worker;

 private:
  void open() override;
  void close() override { worker = nullptr; }
};

}  // namespace heddle
