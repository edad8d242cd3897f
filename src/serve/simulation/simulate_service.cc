#include "heddle/serve/simulate_service.h"

#include <algorithm>
#include <array>

#include "heddle/base/json.h"
#include "heddle/base/sync.h"
#include "service_world.h"
#include "simulated_fleets.h"

namespace heddle {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kWarmUp = 1500 * kMs;    // before the first fault
constexpr int64_t kMeasured = 3000 * kMs;  // after the recovery
constexpr double kMeasuredLoad = .85;      // of the plan's rate: no device may be missing then
constexpr int64_t kAnswerGrace = 3000 * kMs;

class ServiceRun {
 public:
  // `standbys`: at most so many servers more, if the seed has workers.
  ServiceRun(ServiceSimulationCounts& counts, size_t standbys)
      : simulation_(Simulation::current()),
        random_(simulation_.random()),
        counts_(counts),
        standbys_(standbys) {}

  void run() {
    set_up();
    sleep_ns(kWarmUp);
    const int64_t calm = simulation_.now() + ns_from_us(kSimulatedFaults_s * 1e6);
    while (simulation_.now() < calm) {
      sleep_ns(random_.between(20, 1200) * kMs);
      inject();
      requests_.check_answered(kAnswerGrace + server_paused_);
      check_queues();
    }
    end_faults();
    sleep_ns(ns_from_us(kSimulatedRecovery_s * 1e6));
    const int64_t recovered = simulation_.now();
    load_ = kMeasuredLoad;
    sleep_ns(kMeasured);
    sending_ = false;
    sleep_ns(kAnswerGrace);
    check_end(recovered);
    tear_down();
  }

 private:
  static constexpr int64_t kLongestPause = 4000 * kMs;

  void set_up() {
    const auto& planned = planned_fleets()[random_.below(planned_fleets().size())];
    what_.fleet = planned.fleet;
    what_.plan = planned.plan;
    what_.with_workers = random_.chance(.8);
    what_.lease_s = std::array{.3, .5, 1.}[random_.below(3)];
    what_.max_queued = random_.chance(.3) ? 60 : 100'000;
    load_ = random_.uniform(.2, .5);
    network_.watcher = &sessions_;
    simulation_.note(what_.fleet.name + (what_.with_workers ? ", workers" : ", timed here"));
    slots_.resize(what_.with_workers ? 1 + standbys_ : 1);
    if (slots_.size() > 1) {
      simulation_.note(std::to_string(slots_.size()) + " servers");
      what_.disk = std::make_shared<SimulatedDisk>();
      start_thread([this] { restart_replaced(); });
    }
    for (size_t s = 0; s < slots_.size(); ++s) start_server(s);
    if (what_.with_workers) {
      const auto workers = static_cast<int>(random_.between(2, 3));
      for (int w = 0; w < workers; ++w) {
        WorkerOptions options;
        options.name = "w" + std::to_string(w);
        options.host = options.name;
        options.network = std::shared_ptr<WorkerNetwork>(&network_, [](WorkerNetwork*) {});
        // Together as many as the fleet has, each class on at least one worker.
        for (const auto& c : what_.fleet.classes) {
          const int64_t share = c.count / workers + (w < c.count % workers ? 1 : 0);
          if (share > 0) options.devices[c.name] = share;
        }
        workers_.push_back(nullptr);
        start_worker(workers_.size() - 1, options);
      }
    }
    for (const auto& model : what_.fleet.models) start_thread([this, &model] { send_all(model); });
  }

  // Until the end of sending.
  void start_thread(std::function<void()> run) {
    ++senders_;
    simulation_.start(simulation_.process(), [this, run = std::move(run)] {
      run();
      --senders_;
      simulation_.wake(&senders_);
    });
  }

  void start_server(size_t slot) {
    const std::string number = slots_.size() > 1 ? "-" + std::to_string(slot) : "";
    slots_[slot] = std::make_shared<SimulatedServer>("server" + number, what_, network_);
    servers_.push_back(slots_[slot]);
    slots_[slot]->start();
    choose_server();
  }

  // Where clients send to: the server that leads. Of several that believe so, the last.
  void choose_server() {
    const auto serves = [this](const SimulatedServer& s) {
      return s.ready && !simulation_.frozen(s.process);
    };
    if (!server_ || std::ranges::find(slots_, server_) == slots_.end()) server_ = slots_.front();
    for (const auto& s : slots_)
      if (s && serves(*s) && (!serves(*server_) || s->term() > server_->term())) server_ = s;
  }

  // As a supervisor of the host does: a server that another one has replaced stands by again.
  void restart_replaced() {
    while (sending_) {
      sleep_ns(200 * kMs);
      for (size_t s = 0; s < slots_.size(); ++s)
        if (slots_[s]->ended) start_server(s);
    }
  }

  size_t any_server() { return slots_.size() > 1 ? random_.below(slots_.size()) : 0; }
  void start_worker(size_t w, const WorkerOptions& options) {
    auto worker = std::make_shared<SimulatedWorker>(options, network_, slots_, what_.lease_s);
    sessions_.name_process(worker->process, options.name);
    worker->start();
    workers_[w] = worker;
    all_workers_.push_back(std::move(worker));
  }

  // Requests at an uneven rate, each from a thread of its own, as from a connection.
  void send_all(const FleetModel& model) {
    const auto m = static_cast<size_t>(&model - what_.fleet.models.data());
    const auto slo = ns_from_us(model.slo_us);
    while (sending_) {
      const double gap_ns = 1e9 / (what_.plan.models[m].rate_per_s * load_);
      sleep_ns(static_cast<int64_t>(gap_ns * random_.uniform(.5, 1.5)));
      choose_server();
      if (!server_->ready || simulation_.frozen(server_->process)) continue;
      simulation_.start(server_->process,
                        [this, server = server_, name = model.name, slo] { send(server, name, slo); });
    }
  }

  void send(const std::shared_ptr<SimulatedServer>& server, const std::string& model, int64_t slo) {
    InferRequest request = payload_request(model, random_);
    const auto& payload = request.inputs.front();
    const auto number =
        requests_.sent(server->process, payload_digest(payload.data, static_cast<size_t>(payload.bytes)),
                       simulation_.now() + slo);
    server->service.infer(std::move(request), [this, number](const Result<InferResponse>& answer) {
      uint64_t digest = 0;
      if (answer.ok())
        for (const auto& output : answer->outputs)
          if (output.name == kDigestOutput)
            std::copy_n(output.data, sizeof digest, reinterpret_cast<std::byte*>(&digest));
      requests_.answered(number, answer.ok(), digest);
    });
  }

  void note(const std::string& text) {
    ++counts_.faults;
    simulation_.note(text);
  }
  int64_t some_ms(int64_t least, int64_t most) { return random_.between(least, most) * kMs; }

  void inject() {
    choose_server();
    if (what_.disk && random_.chance(.25)) return disturb_store();
    if (!what_.with_workers) {
      switch (random_.below(4)) {
        case 0:
          return pause(*server_);
        case 1:
          return jump_clock();
        case 2:
          return stall();
        default:
          return change_plan();
      }
    }
    switch (random_.below(12)) {
      case 0:
        return cut(server_->process, any_worker().process, true);
      case 1:
        return cut(server_->process, any_worker().process, false);
      case 2:
        return cut(any_worker().process, server_->process, false);
      case 3:
        return cut(any_worker().process, any_worker().process, random_.chance(.5));
      case 4: {
        auto& worker = any_worker();
        note("connections between the server and " + worker.name + " break");
        return network_.break_connections(server_->process, worker.process);
      }
      case 5:
        return restart_worker(random_.below(workers_.size()), true);
      case 6:
        return restart_worker(random_.below(workers_.size()), false);
      case 7:
        return pause(any_worker());
      case 8:
        return random_.chance(.3) ? crash_server(any_server()) : pause(*slots_[any_server()]);
      case 9:
        return jump_clock();
      case 10:
        return random_.chance(.5) ? stall() : delay_messages();
      default:
        return change_plan();
    }
  }

  SimulatedWorker& any_worker() { return *workers_[random_.below(workers_.size())]; }

  void cut(Simulation::Process a, Simulation::Process b, bool both) {
    const int64_t for_ns = some_ms(20, 4000);
    note("cut from " + std::to_string(a) + " to " + std::to_string(b) + (both ? " and back" : "") + " for " +
         std::to_string(for_ns / kMs) + " ms");
    network_.cut(a, b, simulation_.now() + for_ns);
    if (both) network_.cut(b, a, simulation_.now() + for_ns);
  }

  // Stopped, as by a signal or a busy host; its clocks go on.
  void pause(SimulatedProcess& who) {
    if (who.crashed) return;
    const int64_t for_ns = some_ms(5, kLongestPause / kMs);
    note(who.name + " stands still for " + std::to_string(for_ns / kMs) + " ms");
    simulation_.freeze(who.process, simulation_.now() + for_ns);
    if (std::ranges::find(slots_, &who, &std::shared_ptr<SimulatedServer>::get) != slots_.end())
      server_paused_ += for_ns;
  }

  void jump_clock() {
    const int64_t by = some_ms(-20'000, 20'000);
    note("the server's clock jumps");
    simulation_.set_wall_offset(server_->process, by);
  }

  void stall() {
    note("threads are held up");
    simulation_.set_stalls(random_.uniform(0, .003), some_ms(1, 60));
  }

  void delay_messages() {
    note("messages are delayed");
    network_.delays.spikes = random_.uniform(0, .2);
    network_.delays.longest_ns = some_ms(1, 300);
  }

  // Without a word, or in order. Its devices may be slower afterwards.
  void restart_worker(size_t w, bool crashes) {
    auto& worker = *workers_[w];
    auto options = worker.options;
    options.slowdown = random_.chance(.3) ? random_.uniform(1, 6) : 1;
    const bool with_host = crashes && random_.chance(.4);
    note(worker.name + (with_host ? " crashes with its host" : crashes ? " crashes" : " is stopped"));
    if (crashes) {
      ++counts_.crashes;
      worker.cut_off();
      worker.crash(network_, with_host);
      // Another host takes its place.
      if (with_host && random_.chance(.5)) options.host = options.name += "x";
    } else {
      worker.stop();
    }
    sleep_ns(some_ms(0, 2000));
    start_worker(w, options);
  }

  void crash_server(size_t slot) {
    auto& server = *slots_[slot];
    if (server.ended) return;
    note(server.name + " crashes");
    ++counts_.crashes;
    requests_.crashed(server.process);
    server.crash(network_, random_.chance(.4));
    sleep_ns(some_ms(0, 1500));
    start_server(slot);
  }

  // The disk of the servers' lease and state, and the ways to it.
  void disturb_store() {
    const auto server = slots_[any_server()]->process, store = what_.disk->process;
    switch (random_.below(4)) {
      case 0:
        return cut(server, store, random_.chance(.5));
      case 1:
        return cut(store, server, false);
      case 2: {
        const int64_t for_ns = some_ms(5, kLongestPause / kMs);
        note("the store stands still for " + std::to_string(for_ns / kMs) + " ms");
        return simulation_.freeze(store, simulation_.now() + for_ns);
      }
      default:
        what_.disk->full = !what_.disk->full;
        return note(what_.disk->full ? "the store's disk is full" : "the store's disk has room again");
    }
  }

  void change_plan() {
    if (!server_->ready) return;
    Fleet fleet = what_.fleet;
    auto& c = fleet.classes[random_.below(fleet.classes.size())];
    c.count -= random_.between(0, 1);
    note("the fleet has " + std::to_string(c.count) + " devices of class " + c.name);
    replace(fleet);
  }

  void replace(const Fleet& fleet) {
    ++counts_.plan_changes;
    const auto change = std::make_shared<Change>(Change{server_});
    changes_.push_back(change);
    simulation_.start(server_->process, [this, change, fleet] {
      if (!change->server->control) return void(change->answered = true);
      change->asked = true;
      change->server->control->replace(fleet, [this, change](const Status& status) {
        if (change->answered) simulation_.fail("a change of plan is answered twice");
        change->answered = true;
        change->done = status.ok();
        simulation_.note(status.ok() ? "the plan is changed"
                                     : "no other plan: " + status.error().to_string());
      });
    });
  }

  void end_faults() {
    simulation_.note("all faults end");
    network_.heal_all();
    network_.delays.spikes = 0;
    simulation_.set_stalls(0, 0);
    for (const auto& server : slots_) simulation_.freeze(server->process, 0);
    if (what_.disk) {
      what_.disk->full = false;
      simulation_.freeze(what_.disk->process, 0);
    }
    for (size_t w = 0; w < workers_.size(); ++w) {
      auto& worker = *workers_[w];
      simulation_.freeze(worker.process, 0);
      if (worker.options.slowdown == 1) continue;
      auto options = worker.options;
      options.slowdown = 1;
      worker.stop();
      start_worker(w, options);
    }
    // A standby needs a lease to take over, and workers one to find it.
    for (int i = 0; what_.disk && i < 100; ++i) {
      choose_server();
      if (server_->ready) break;
      sleep_ns(50 * kMs);
    }
    if (!server_->ready) return;
    // Behind the changes that were asked for before, which may reach the server in any order.
    for (size_t i = 0; i < changes_.size(); ++i)
      while (changes_[i]->server == server_ && !changes_[i]->answered) sleep_ns(50 * kMs);
    replace(what_.fleet);
    // A server that was replaced meanwhile refuses: the one that leads is asked.
    for (int i = 0; what_.disk && i < 100 && !changes_.back()->done; ++i) {
      sleep_ns(50 * kMs);
      choose_server();
      if (changes_.back()->answered ? !changes_.back()->done : server_ != changes_.back()->server)
        if (server_->ready) replace(what_.fleet);
    }
  }

  void check_queues() {
    if (!server_->ready || simulation_.frozen(server_->process)) return;
    for (const auto& model : server_->service.status()["models"])
      if (model["in_plane"].get<size_t>() > what_.max_queued)
        simulation_.fail("model " + model["name"].get<std::string>() +
                         " has more requests in work than may wait");
  }

  void check_end(int64_t recovered) {
    auto& server = *server_;
    if (!server.ready)
      simulation_.fail("the server is not ready " + std::to_string(kSimulatedRecovery_s) +
                       " s after the last fault");
    requests_.check_answered(0);
    const double attainment = requests_.attainment(recovered);
    if (attainment < kSimulatedAttainment)
      simulation_.fail("of the requests " + std::to_string(attainment * 100).substr(0, 5) +
                       " % are in time when all faults have ended");
    uint64_t counted = 0, answered = 0;
    for (const auto& [model, record] : server.service.all_statistics()) {
      for (size_t o = 1; o < kOutcomes; ++o) counted += record.requests[o];
      answered += record.success.count;
    }
    check_equal("requests", counted, requests_.requests(server.process));
    check_equal("answers", answered, requests_.answers(server.process));
    for (const auto& model : server.service.status()["models"])
      check_equal("requests in work", model["in_plane"].get<uint64_t>(), 0);
    for (const auto& change : changes_)
      if (change->server == server_ && change->asked && !change->answered)
        simulation_.fail("a change of plan has no answer");
    if (!server.pool) return;
    for (const auto& worker : server.pool->workers()) {
      const bool there = std::any_of(workers_.begin(), workers_.end(),
                                     [&worker](const auto& w) { return w->name == worker.name; });
      if ((worker.state == "connected") != there)
        simulation_.fail("worker '" + worker.name + "' is " + worker.state + ": " + worker.reason);
      check_equal("runs of worker '" + worker.name + "'", worker.runs,
                  sessions_.runs(server.process, worker.name));
    }
    // Those of batches that were given up stay for some minutes.
    for (const auto& worker : workers_)
      if (const auto kept = worker->worker->counters().maps_kept; kept > 100 + requests_.sent() / 10)
        simulation_.fail("worker '" + worker->name + "' keeps " + std::to_string(kept) + " feature maps");
    constexpr size_t kMostThreads = 200;
    if (simulation_.threads() > kMostThreads)
      simulation_.fail(std::to_string(simulation_.threads()) + " threads are left");
  }

  void check_equal(const std::string& what, uint64_t here, uint64_t there) {
    if (here != there)
      simulation_.fail(what + ": the server counts " + std::to_string(here) + ", there were " +
                       std::to_string(there));
  }

  // In order, and those that have crashed at last: only now is their memory freed.
  void tear_down() {
    while (senders_ > 0) simulation_.wait(&senders_, INT64_MAX);
    counts_.requests = requests_.sent();
    counts_.in_time = requests_.in_time();
    for (const auto& worker : all_workers_) {
      simulation_.freeze(worker->process, 0);
      worker->stop();
    }
    for (const auto& server : servers_) {
      simulation_.freeze(server->process, 0);
      server->stop();
    }
    for (const auto& worker : all_workers_) worker->join();
    for (const auto& server : servers_) server->join();
    while (simulation_.threads() > 1) sleep_ns(10 * kMs);
    changes_.clear();
    workers_.clear();
    all_workers_.clear();
    server_ = nullptr;
    slots_.clear();
    servers_.clear();
  }

  struct Change {
    std::shared_ptr<SimulatedServer> server;
    bool asked = false, answered = false, done = false;
  };

  Simulation& simulation_;
  Random& random_;
  ServiceSimulationCounts& counts_;
  SimulatedNetwork network_;
  SessionChecks sessions_;
  RequestChecks requests_;
  SimulatedService what_;
  double load_ = 0;
  int64_t server_paused_ = 0;
  bool sending_ = true;
  int senders_ = 0;
  std::vector<std::shared_ptr<Change>> changes_;
  const size_t standbys_;
  std::vector<std::shared_ptr<SimulatedServer>> slots_;    // the present ones; as many as there are hosts
  std::shared_ptr<SimulatedServer> server_;                // of these, the one that leads
  std::vector<std::shared_ptr<SimulatedServer>> servers_;  // all there ever were
  std::vector<std::shared_ptr<SimulatedWorker>> workers_;  // the present ones
  std::vector<std::shared_ptr<SimulatedWorker>> all_workers_;
};

}  // namespace

ServiceSimulationResult simulate_service(const ServiceSimulationOptions& options) {
  planned_fleets();
  ServiceSimulationResult result;
  ThreadSimulationOptions simulated;
  simulated.seed = options.seed;
  simulated.trace = options.trace;
  simulated.switching = Random(options.seed).uniform(.02, .5);
  Simulation simulation(simulated);
  const auto start = std::make_shared<int64_t>(0);
  auto counts = std::make_shared<ServiceSimulationCounts>();
  // Numbers of their own, so that seeds without standbys stay what they were.
  Random standby(options.seed ^ 0x5354414e'44425953);
  const size_t standbys = standby.chance(.4) ? static_cast<size_t>(standby.between(1, 2)) : 0;
  result.status = simulation.run([&simulation, counts, start, standbys] {
    *start = simulation.now();
    ServiceRun(*counts, standbys).run();
  });
  result.digest = simulation.digest();
  result.counts = *counts;
  result.counts.steps = simulation.steps();
  result.simulated_s = seconds_from_ns(simulation.now() - *start);
  return result;
}

}  // namespace heddle
