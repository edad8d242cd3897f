// One seed's run of a simulated service: what it sets up, its load, its faults and what must hold in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/serve/simulate_service.h"
#include "service_checks.h"
#include "service_world.h"

namespace heddle {

// What seeds choose beside all that happens.
struct ServiceRunKind {
  size_t standbys = 0;       // at most so many servers more, if the seed has workers
  bool keeps_files = false;  // servers keep lease and state in a folder of their host
  bool steady = false;       // nobody changes the plan, so each data plane lives as long as its server
};

class ServiceRun {
 public:
  ServiceRun(ServiceSimulationCounts& counts, const ServiceRunKind& kind)
      : simulation_(Simulation::current()), random_(simulation_.random()), counts_(counts), kind_(kind) {}
  void run();

 private:
  struct Change {
    std::shared_ptr<SimulatedServer> server;
    bool asked = false, answered = false, done = false;
  };

  // service_run.cc
  void set_up();
  void set_up_store();
  void start_thread(std::function<void()> run);  // until the end of sending
  void start_server(size_t slot);
  void choose_server();
  void restart_replaced();
  void start_worker(size_t w, WorkerOptions options);
  void send_all(const FleetModel& model);
  void send(const std::shared_ptr<SimulatedServer>& server, const std::string& model, int64_t slo);
  void check_now();
  void check_queues();
  void check_end(int64_t recovered);
  void check_workers();
  void check_equal(const std::string& what, uint64_t here, uint64_t there);
  void tear_down();

  // service_looks.cc
  void look_often();
  void look_at(const SimulatedWorker& worker);
  void look_at(const SimulatedServer& server);

  // service_faults.cc
  void inject();
  void inject_here();
  void end_faults();
  void note(const std::string& text);
  int64_t some_ms(int64_t least, int64_t most);
  size_t any_server();
  SimulatedWorker& any_worker();
  void cut(Simulation::Process a, Simulation::Process b, bool both, int64_t longest_ms = 4000);
  void cut_among_workers();
  void break_connections();
  void disturb(const SimulatedProcess& who, int64_t for_ns);
  void pause(SimulatedProcess& who);
  void hold_up(SimulatedProcess& who);
  void fail_device();
  std::string run_error(const std::string& worker, uint32_t device);
  void jump_clock();
  void stall();
  void delay_messages();
  void restart_worker(size_t w, bool crashes);
  void crash_server(size_t slot, bool with_host);
  void crash_servers_host();
  void disturb_store();
  void disturb_drive();
  void change_plan();
  void replace(const Fleet& fleet);

  Simulation& simulation_;
  Random& random_;
  ServiceSimulationCounts& counts_;
  const ServiceRunKind kind_;
  Disturbances disturbances_;
  SimulatedNetwork network_;
  SessionChecks sessions_{disturbances_};
  RequestChecks requests_{disturbances_};
  SimulatedService what_;
  double load_ = 0;
  int64_t server_paused_ = 0;
  bool servers_host_is_down_ = false;  // nothing starts there
  struct FailingDevices {
    uint32_t first = 0, every = 1;  // of a plan's numbers for devices: each so many-th
    double chance = 0;              // of each run
  };
  std::map<std::string, FailingDevices> failing_;  // by worker
  bool sending_ = true;
  int senders_ = 0;
  std::vector<std::shared_ptr<Change>> changes_;
  std::vector<std::shared_ptr<SimulatedServer>> slots_;    // the present ones; as many as there are hosts
  std::shared_ptr<SimulatedServer> server_;                // of these, the one that leads
  std::vector<std::shared_ptr<SimulatedServer>> servers_;  // all there ever were
  std::vector<std::shared_ptr<SimulatedWorker>> workers_;  // the present ones
  std::vector<std::shared_ptr<SimulatedWorker>> all_workers_;
};

}  // namespace heddle
