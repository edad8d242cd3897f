#include "service_run.h"

#include <algorithm>
#include <array>

#include "heddle/base/json.h"
#include "heddle/base/sync.h"
#include "simulated_fleets.h"

namespace heddle {
namespace {

constexpr int64_t kWarmUp = 1500 * kMs;    // before the first fault
constexpr int64_t kMeasured = 3000 * kMs;  // after the recovery
constexpr double kMeasuredLoad = .85;      // of the plan's rate: no device may be missing then
constexpr int64_t kAnswerGrace = 3000 * kMs;
// An end waits when 64 KiB are on their way: that, and one message. The least messages have some bytes.
constexpr size_t kMostStreamBytes = 256 << 10, kMostStreamMessages = 20'000;

}  // namespace

void ServiceRun::run() {
  set_up();
  sleep_ns(kWarmUp);
  const int64_t calm = simulation_.now() + ns_from_us(kSimulatedFaults_s * 1e6);
  while (simulation_.now() < calm) {
    sleep_ns(random_.between(20, 1200) * kMs);
    inject();
    check_now();
  }
  end_faults();
  sleep_ns(ns_from_us(kSimulatedRecovery_s * 1e6));
  const int64_t recovered = simulation_.now();
  load_ = kMeasuredLoad;
  sleep_ns(kMeasured);
  check_now();
  sending_ = false;
  sleep_ns(kAnswerGrace);
  check_end(recovered);
  tear_down();
}

void ServiceRun::set_up() {
  const auto& planned = planned_fleets()[random_.below(planned_fleets().size())];
  what_.fleet = planned.fleet;
  what_.plan = planned.plan;
  what_.with_workers = random_.chance(.8);
  what_.lease_s = std::array{.3, .5, 1.}[random_.below(3)];
  what_.max_queued = random_.chance(.3) ? 60 : 100'000;
  if (random_.chance(.3))
    what_.max_memory = 60 * sizeof(uint64_t);  // of the digests that requests are answered with
  load_ = random_.chance(.7) ? random_.uniform(.2, .5) : random_.uniform(.5, .9);
  network_.watcher = &sessions_;
  network_.most_stream_bytes = kMostStreamBytes;
  network_.most_stream_messages = kMostStreamMessages;
  // Before another plan is in use, runs of the one before end.
  if (what_.with_workers && kind_.steady) requests_.longest_ns = RemotePatience().grace_ns;
  simulation_.note(what_.fleet.name + (what_.with_workers ? ", workers" : ", timed here") +
                   (kind_.steady ? ", one plan" : ""));
  slots_.resize(what_.with_workers ? 1 + kind_.standbys : 1);
  requests_.have_digests = what_.with_workers;
  if (what_.with_workers) set_up_store();
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
  start_thread([this] { look_often(); });
}

void ServiceRun::set_up_store() {
  if (kind_.keeps_files) {
    what_.drive = std::make_shared<SimulatedDrive>();
  } else if (slots_.size() > 1) {
    what_.disk = std::make_shared<SimulatedDisk>();
  } else {
    return;
  }
  what_.ledger = std::make_shared<StoreLedger>();
  simulation_.note(std::to_string(slots_.size()) + " servers, state in a " +
                   (what_.drive ? "folder" : "store"));
  start_thread([this] { restart_replaced(); });
}

void ServiceRun::start_thread(std::function<void()> run) {
  ++senders_;
  simulation_.start(simulation_.process(), [this, run = std::move(run)] {
    run();
    --senders_;
    simulation_.wake(&senders_);
  });
}

void ServiceRun::start_server(size_t slot) {
  const std::string number = slots_.size() > 1 ? "-" + std::to_string(slot) : "";
  slots_[slot] = std::make_shared<SimulatedServer>("server" + number, what_, network_);
  servers_.push_back(slots_[slot]);
  slots_[slot]->start();
  choose_server();
}

// Where clients send to: the server that leads. Of several that believe so, the last.
void ServiceRun::choose_server() {
  const auto serves = [this](const SimulatedServer& s) { return s.ready && !simulation_.frozen(s.process); };
  if (!server_ || std::ranges::find(slots_, server_) == slots_.end()) server_ = slots_.front();
  for (const auto& s : slots_)
    if (s && serves(*s) && (!serves(*server_) || s->term() > server_->term())) server_ = s;
}

// As a supervisor of the host does: a server that another one has replaced stands by again.
void ServiceRun::restart_replaced() {
  while (sending_) {
    sleep_ns(200 * kMs);
    for (size_t s = 0; s < slots_.size(); ++s)
      if (slots_[s]->ended && !servers_host_is_down_) start_server(s);
  }
}

void ServiceRun::start_worker(size_t w, WorkerOptions options) {
  options.timed_run_error = [this, name = options.name](uint32_t device) { return run_error(name, device); };
  auto worker = std::make_shared<SimulatedWorker>(options, network_, slots_, what_.lease_s);
  sessions_.name_process(worker->process, options.name);
  worker->start();
  workers_[w] = worker;
  all_workers_.push_back(std::move(worker));
}

// Requests at an uneven rate, each from a thread of its own, as from a connection.
void ServiceRun::send_all(const FleetModel& model) {
  const auto m = static_cast<size_t>(&model - what_.fleet.models.data());
  const auto slo = ns_from_us(model.slo_us);
  while (sending_) {
    const double gap_ns = 1e9 / (what_.plan.models[m].rate_per_s * load_);
    sleep_ns(static_cast<int64_t>(gap_ns * random_.uniform(.5, 1.5)));
    choose_server();
    if (!server_->ready || simulation_.frozen(server_->process)) {
      requests_.refused();
      continue;
    }
    simulation_.start(server_->process,
                      [this, server = server_, name = model.name, slo] { send(server, name, slo); });
  }
}

void ServiceRun::send(const std::shared_ptr<SimulatedServer>& server, const std::string& model, int64_t slo) {
  InferRequest request = payload_request(model, random_);
  request.priority = random_.between(0, 3);
  const auto& payload = request.inputs.front();
  const auto number =
      requests_.sent(server->process, payload_digest(payload.data, static_cast<size_t>(payload.bytes)),
                     simulation_.now() + slo);
  server->service.infer(std::move(request), [this, number](const Result<InferResponse>& answer) {
    requests_.answered(number, answer.ok(), digest_of(answer));
  });
}

void ServiceRun::check_now() {
  requests_.check_answered(kAnswerGrace + server_paused_);
  check_queues();
  for (const auto& server : servers_)
    if (server->crashed || server->closing) sessions_.left(server->process);
  for (const auto& worker : all_workers_)
    if (worker->crashed || worker->closing) sessions_.left(worker->process);
  // Two leases, and what its next look may take: its announcement, and a quarter of a lease.
  sessions_.check_times(ns_from_us(4e6 * what_.lease_s));
}

void ServiceRun::check_queues() {
  if (!server_->ready || simulation_.frozen(server_->process)) return;
  const Json status = server_->status();
  for (const auto& model : status["models"])
    if (model["in_plane"].get<size_t>() > what_.max_queued)
      simulation_.fail("model " + model["name"].get<std::string>() +
                       " has more requests in work than may wait");
}

void ServiceRun::check_end(int64_t recovered) {
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
  const Json status = server.status();
  for (const auto& model : status["models"])
    check_equal("requests in work", model["in_plane"].get<uint64_t>(), 0);
  for (const auto& change : changes_)
    if (change->server == server_ && change->asked && !change->answered)
      simulation_.fail("a change of plan has no answer");
  if (server.pool) check_workers();
  // Of those that have crashed, the threads are there until the end of the run.
  size_t threads = simulation_.threads(simulation_.process());
  for (const auto& s : slots_) threads += simulation_.threads(s->process);
  for (const auto& w : workers_) threads += simulation_.threads(w->process);
  constexpr size_t kMostThreads = 150;
  if (threads > kMostThreads) simulation_.fail(std::to_string(threads) + " threads are left");
}

void ServiceRun::check_workers() {
  auto& server = *server_;
  for (const auto& pool : server.service.pools())
    if (pool.counters.lost > 0)
      simulation_.fail(std::to_string(pool.counters.lost) + " devices of class " + pool.role.device_class +
                       " get no work, though their workers are there");
  const auto given_up = server.status()["faults"]["given_up"].get<uint64_t>();
  const auto overdue = sessions_.overdue(server.process);
  if (kind_.steady && given_up < overdue)
    simulation_.fail("the server has given up " + std::to_string(given_up) + " steps, of which " +
                     std::to_string(overdue) + " took too long");
  for (const auto& worker : server.pool->workers()) {
    const bool there = std::any_of(workers_.begin(), workers_.end(),
                                   [&worker](const auto& w) { return w->name == worker.name; });
    if ((worker.state == "connected") != there)
      simulation_.fail("worker '" + worker.name + "' is " + worker.state + ": " + worker.reason);
    check_equal("runs of worker '" + worker.name + "'", worker.runs,
                sessions_.runs(server.process, worker.name));
  }
  for (const auto& worker : workers_)
    check_equal("runs of the devices of '" + worker->name + "' in this session",
                sessions_.runs_of_session(worker->process), worker->worker->counters().session_runs);
}

void ServiceRun::check_equal(const std::string& what, uint64_t here, uint64_t there) {
  if (here != there)
    simulation_.fail(what + ": the server counts " + std::to_string(here) + ", there were " +
                     std::to_string(there));
}

// In order, and those that have crashed at last: only now is their memory freed.
void ServiceRun::tear_down() {
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

}  // namespace heddle
