#include "service_world.h"

#include <algorithm>

#include "heddle/base/sync.h"
#include "standby/stored_succession.h"

namespace heddle {
namespace {

constexpr int64_t kLook_ns = 50'000'000;
constexpr uint64_t kFleetFile = 1;  // the hash of its content

}  // namespace

InferRequest payload_request(const std::string& model, Random& random) {
  const auto size = static_cast<size_t>(random.between(1, 200));
  const std::shared_ptr<std::byte[]> payload(new std::byte[size]);
  for (size_t i = 0; i < size; ++i) payload[i] = static_cast<std::byte>(random.below(256));
  InferRequest request;
  request.model = model;
  InferTensor tensor;
  tensor.name = kPayloadInput;
  tensor.dtype = DType::kU8;
  tensor.shape = {static_cast<int64_t>(size)};
  tensor.data = payload.get();
  tensor.bytes = static_cast<int64_t>(size);
  tensor.owner = payload;
  request.inputs.push_back(std::move(tensor));
  return request;
}

uint64_t digest_of(const Result<InferResponse>& answer) {
  uint64_t digest = 0;
  if (!answer.ok()) return digest;
  for (const auto& output : answer->outputs)
    if (output.name == kDigestOutput)
      std::copy_n(output.data, sizeof digest, reinterpret_cast<std::byte*>(&digest));
  return digest;
}

int64_t SimulatedServer::next_look() const {
  return succession_ ? Simulation::current().now() + kLook_ns : INT64_MAX;
}

Result<std::shared_ptr<SharedStore>> SimulatedServer::open_store() {
  if (what_.disk) return checked_store(simulated_store(what_.disk, network_), what_.ledger);
  HEDDLE_ASSIGN_OR_RETURN(auto store, folder_store("/state", *files_));
  return checked_store(std::move(store), what_.ledger);
}

// Stands by until this server leads. False: it was stopped before.
bool SimulatedServer::lead() {
  auto& simulation = Simulation::current();
  SuccessionOptions options;
  options.name = name;
  options.lease_s = what_.lease_s;
  while (!stopping_) {
    if (!succession_) {
      if (const auto store = open_store(); store.ok()) succession_ = stored_succession(*store, options);
    }
    const auto waits = [&simulation, this](const std::string& leader) {
      simulation.note(name + " stands by, " + leader + " leads");
    };
    if (succession_ && succession_->wait_to_lead(leaves_, waits).ok()) {
      term_ = succession_->term();
      simulation.note(name + " leads in term " + std::to_string(term_));
      return true;
    }
    sleep_ns(kLook_ns);  // the store does not answer
  }
  return false;
}

// With what the leader before has saved, if there was one.
Result<std::unique_ptr<FleetControl>> SimulatedServer::make_control(const FleetControlOptions& options) {
  if (succession_) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string saved, succession_->saved_state(kFleetFile));
    if (!saved.empty()) return FleetControl::resume(service, saved, options);
  }
  return FleetControl::create(service, what_.fleet, what_.plan, options);
}

void SimulatedServer::open() {
  auto& simulation = Simulation::current();
  service.set_max_memory(what_.max_memory);
  if (what_.has_store() && !lead()) return;
  if (what_.with_workers) {
    bus = in_process_bus({.lease_s = what_.lease_s}).value();
    WorkerPoolOptions options;
    options.lease_s = what_.lease_s;
    options.term = term_;
    options.network = std::shared_ptr<WorkerNetwork>(&network_, [](WorkerNetwork*) {});
    pool = WorkerPool::create(bus, options).value();
  }
  FleetControlOptions options;
  options.workers = pool.get();
  options.plane.max_queued = what_.max_queued;
  options.wait_s = 5;
  options.replan_s = 1e6;  // by a real clock, which must not decide
  options.cancel = leaves_;
  options.succession = succession_.get();
  if (succession_)
    options.save = [this](const std::string& state) { return succession_->save(kFleetFile, state); };
  while (!stopping_ && !replaced()) {
    auto made = make_control(options);
    if (made.ok()) {
      control = std::move(made).value();
      simulation.note("the " + name + " is ready");
      return;
    }
    simulation.note("the " + name + " waits: " + made.error().to_string());
    sleep_ns(100'000'000);
  }
}

Json SimulatedServer::status() {
  ++asked_;
  Json status = service.status();
  --asked_;
  Simulation::current().wake(&asked_);
  return status;
}

void SimulatedServer::close() {
  while (asked_ > 0) Simulation::current().wait(&asked_, INT64_MAX);
  control = nullptr;
  service.stop(replaced() ? 0 : 2);
  pool = nullptr;
  bus = nullptr;
  succession_ = nullptr;
}

Status SimulatedAnnouncer::call(std::function<Status(WorkerBus&)> what) {
  struct Answer {
    bool there = false;
    Status status;
  };
  auto& simulation = Simulation::current();
  const auto answer = std::make_shared<Answer>();
  const auto server = server_;
  const auto me = simulation.process();
  const int64_t until = simulation.now() + ns_from_us(lease_s_ * 1e6);
  Status lost = io_error("the bus does not answer");
  if (cut_off) return lost;
  const int64_t arrives = simulation.now() + network_.delay();
  const auto there = server->process;
  simulation.start(
      there, [&simulation, &network = network_, answer, server, what = std::move(what), arrives, there, me] {
        while (std::max(arrives, network.cut_until(me, there)) > simulation.now())
          simulation.wait(&arrives, std::max(arrives, network.cut_until(me, there)));
        if (!server->bus) return;
        const auto bus = server->bus;
        const auto status = what(*bus);
        const int64_t back = simulation.now() + network.delay();
        while (std::max(back, network.cut_until(there, me)) > simulation.now())
          simulation.wait(&back, std::max(back, network.cut_until(there, me)));
        *answer = {true, status};
        simulation.wake(answer.get());
      });
  while (!answer->there && simulation.now() < until) simulation.wait(answer.get(), until);
  return answer->there ? answer->status : lost;
}

void SimulatedWorker::open() {
  std::vector<std::unique_ptr<Announcer>> announcers;
  for (const auto& server : servers_) {
    auto announcer = std::make_unique<SimulatedAnnouncer>(network_, server, lease_s_);
    announcers_.push_back(announcer.get());
    announcers.push_back(std::move(announcer));
  }
  announcer_ = several_announcers(std::move(announcers));
  while (!stopping_) {
    auto started = Worker::start(options, *announcer_);
    if (started.ok()) {
      worker = std::move(started).value();
      return;
    }
    sleep_ns(50'000'000);  // the port of the process before is still taken
  }
}

}  // namespace heddle
