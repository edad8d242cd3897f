#include "service_world.h"

#include "heddle/base/sync.h"

namespace heddle {

void SimulatedServer::open() {
  auto& simulation = Simulation::current();
  if (what_.with_workers) {
    bus = in_process_bus({.lease_s = what_.lease_s}).value();
    WorkerPoolOptions options;
    options.lease_s = what_.lease_s;
    options.network = std::shared_ptr<WorkerNetwork>(&network_, [](WorkerNetwork*) {});
    pool = WorkerPool::create(bus, options).value();
  }
  FleetControlOptions options;
  options.workers = pool.get();
  options.plane.max_queued = what_.max_queued;
  options.wait_s = 5;
  options.replan_s = 1e6;  // by a real clock, which must not decide
  while (!stopping_) {
    auto made = FleetControl::create(service, what_.fleet, what_.plan, options);
    if (made.ok()) {
      control = std::move(made).value();
      simulation.note("the server is ready");
      return;
    }
    simulation.note("the server waits: " + made.error().to_string());
    sleep_ns(100'000'000);
  }
}

void SimulatedServer::close() {
  control = nullptr;
  service.stop(2);
  pool = nullptr;
  bus = nullptr;
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
  const Status lost = io_error("the bus does not answer");
  if (cut_off) return lost;
  const int64_t arrives = simulation.now() + network_.delay();
  const auto there = server->process;
  simulation.start(there, [&simulation, this, answer, server, what = std::move(what), arrives, there, me] {
    while (std::max(arrives, network_.cut_until(me, there)) > simulation.now())
      simulation.wait(&arrives, std::max(arrives, network_.cut_until(me, there)));
    if (!server->bus) return;
    const auto bus = server->bus;
    const auto status = what(*bus);
    const int64_t back = simulation.now() + network_.delay();
    while (std::max(back, network_.cut_until(there, me)) > simulation.now())
      simulation.wait(&back, std::max(back, network_.cut_until(there, me)));
    *answer = {true, status};
    simulation.wake(answer.get());
  });
  while (!answer->there && simulation.now() < until) simulation.wait(answer.get(), until);
  return answer->there ? answer->status : lost;
}

void SimulatedWorker::open() {
  while (!stopping_) {
    auto started = Worker::start(options, announcer);
    if (started.ok()) {
      worker = std::move(started).value();
      return;
    }
    sleep_ns(50'000'000);  // the port of the process before is still taken
  }
}

}  // namespace heddle
