// The faults of a run: each happens at a time and in a place that the seed chooses, and all end together.
#include <algorithm>

#include "heddle/base/sync.h"
#include "service_run.h"

namespace heddle {
namespace {

constexpr int64_t kLongestPause = 4000 * kMs;

}  // namespace

void ServiceRun::note(const std::string& text) {
  ++counts_.faults;
  simulation_.note(text);
}
int64_t ServiceRun::some_ms(int64_t least, int64_t most) { return random_.between(least, most) * kMs; }

void ServiceRun::inject() {
  choose_server();
  if (what_.has_store() && random_.chance(.25)) return what_.drive ? disturb_drive() : disturb_store();
  if (!what_.with_workers) return inject_here();
  switch (random_.below(16)) {
    case 0:
      return cut(server_->process, any_worker().process, true);
    case 1:
      return cut(server_->process, any_worker().process, false);
    case 2:
      return cut(any_worker().process, server_->process, false);
    case 3:
    case 4:
      return cut_among_workers();
    case 5:
      return break_connections();
    case 6:
      return restart_worker(random_.below(workers_.size()), true);
    case 7:
      return restart_worker(random_.below(workers_.size()), false);
    case 8:
      return pause(any_worker());
    case 9:
      return random_.chance(.3) ? crash_server(any_server(), random_.chance(.4))
                                : pause(*slots_[any_server()]);
    case 10:
      return jump_clock();
    case 11:
      return stall();
    case 12:
      return delay_messages();
    case 13:
      if (random_.chance(.5)) return hold_up(any_worker());
      hold_up(*slots_[any_server()]);
      // So that the thread brings what it has decided for a session that has ended since.
      if (random_.chance(.5)) break_connections();
      return;
    case 14:
      return fail_device();
    default:
      return change_plan();
  }
}

// Where there is one process.
void ServiceRun::inject_here() {
  switch (random_.below(5)) {
    case 0:
      return pause(*server_);
    case 1:
      return jump_clock();
    case 2:
      return stall();
    case 3:
      return hold_up(*server_);
    default:
      return change_plan();
  }
}

size_t ServiceRun::any_server() { return slots_.size() > 1 ? random_.below(slots_.size()) : 0; }

SimulatedWorker& ServiceRun::any_worker() { return *workers_[random_.below(workers_.size())]; }

void ServiceRun::cut(Simulation::Process a, Simulation::Process b, bool both, int64_t longest_ms) {
  const int64_t for_ns = some_ms(20, longest_ms);
  note("cut from " + std::to_string(a) + " to " + std::to_string(b) + (both ? " and back" : "") + " for " +
       std::to_string(for_ns / kMs) + " ms");
  network_.cut(a, b, simulation_.now() + for_ns);
  if (both) network_.cut(b, a, simulation_.now() + for_ns);
}

// Feature maps travel there. A link that comes and goes brings them late, rather than not at all.
void ServiceRun::cut_among_workers() {
  const size_t one = random_.below(workers_.size());
  const size_t other = (one + 1 + random_.below(workers_.size() - 1)) % workers_.size();
  const auto from = workers_[one]->process, to = workers_[other]->process;
  const bool both = random_.chance(.5);
  if (random_.chance(.5)) return cut(from, to, both);
  for (int i = 0; i < 6; ++i) {
    cut(from, to, both, 400);
    sleep_ns(some_ms(50, 500));
  }
}

void ServiceRun::break_connections() {
  auto& worker = any_worker();
  note("connections between the server and " + worker.name + " break");
  network_.break_connections(server_->process, worker.process);
}

// Stopped, as by a signal or a busy host; its clocks go on.
void ServiceRun::pause(SimulatedProcess& who) {
  if (who.crashed) return;
  const int64_t for_ns = some_ms(5, kLongestPause / kMs);
  note(who.name + " stands still for " + std::to_string(for_ns / kMs) + " ms");
  simulation_.freeze(who.process, simulation_.now() + for_ns);
  disturb(who, for_ns);
}

// A driver or a file that does not answer: the other threads go on.
void ServiceRun::hold_up(SimulatedProcess& who) {
  if (who.crashed) return;
  const int64_t for_ns = some_ms(5, kLongestPause / kMs);
  const bool reader = random_.chance(.5);
  note(std::string(reader ? "the next reader" : "a thread") + " of " + who.name + " stands still for " +
       std::to_string(for_ns / kMs) + " ms");
  if (reader) {
    network_.hold_up_reader(who.process, simulation_.now() + for_ns);
  } else {
    simulation_.hold_up(who.process, simulation_.now() + for_ns);
  }
  disturb(who, for_ns);
}

void ServiceRun::disturb(const SimulatedProcess& who, int64_t for_ns) {
  disturbances_.add(who.process, simulation_.now() + for_ns);
  if (std::ranges::find(slots_, &who, &std::shared_ptr<SimulatedServer>::get) != slots_.end())
    server_paused_ += for_ns;
}

// Runs end with an error, on some devices of the worker or on all, until it works again. Some may be none: only the
// plan numbers its devices.
void ServiceRun::fail_device() {
  const auto& name = any_worker().name;
  if (failing_.erase(name) > 0) return note("the devices of " + name + " work again");
  FailingDevices failing;
  if (random_.chance(.5)) {
    failing.every = 3;
    failing.first = static_cast<uint32_t>(random_.below(failing.every));
  }
  failing.chance = random_.uniform(.1, 1);
  note("runs of some devices of " + name + " fail");
  failing_[name] = failing;
}

std::string ServiceRun::run_error(const std::string& worker, uint32_t device) {
  const auto it = failing_.find(worker);
  if (it == failing_.end() || device % it->second.every != it->second.first) return {};
  return random_.chance(it->second.chance) ? "the device has failed" : "";
}

void ServiceRun::jump_clock() {
  const int64_t by = some_ms(-20'000, 20'000);
  note("the server's clock jumps");
  simulation_.set_wall_offset(server_->process, by);
}

void ServiceRun::stall() {
  note("threads are held up");
  const int64_t longest = some_ms(1, 60);
  simulation_.set_stalls(random_.uniform(0, .003), longest);
  disturbances_.slack_ns = std::max(disturbances_.slack_ns, 6 * longest);
}

void ServiceRun::delay_messages() {
  note("messages are delayed");
  network_.delays.spikes = random_.uniform(0, .2);
  network_.delays.longest_ns = some_ms(1, 300);
}

// Without a word, or in order. Its devices may be slower afterwards.
void ServiceRun::restart_worker(size_t w, bool crashes) {
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
    if (with_host && random_.chance(.5)) options.host = options.name += 'x';
  } else {
    worker.stop();
  }
  sleep_ns(some_ms(0, 2000));
  start_worker(w, options);
}

void ServiceRun::crash_server(size_t slot, bool with_host) {
  auto& server = *slots_[slot];
  if (server.ended) return;
  note(server.name + " crashes");
  ++counts_.crashes;
  requests_.crashed(server.process);
  server.crash(network_, with_host);
  server.crash_files();
  sleep_ns(some_ms(0, 1500));
  start_server(slot);
}

// The host whose folder the servers share: all crash, and what was not synced may be lost.
void ServiceRun::crash_servers_host() {
  note("the servers' host crashes");
  for (const auto& server : slots_) {
    if (server->ended) continue;
    ++counts_.crashes;
    requests_.crashed(server->process);
    server->crash(network_, true);
    server->crash_files();
  }
  what_.drive->crash();
  servers_host_is_down_ = true;
  sleep_ns(some_ms(0, 1500));
  servers_host_is_down_ = false;
  for (size_t s = 0; s < slots_.size(); ++s) start_server(s);
}

// The disk of the servers' lease and state, and the ways to it.
void ServiceRun::disturb_store() {
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

void ServiceRun::disturb_drive() {
  auto& drive = *what_.drive;
  switch (random_.below(6)) {
    case 0:
      return crash_servers_host();
    case 1:
      return crash_server(any_server(), false);
    case 2:
      drive.full = !drive.full;
      return note(drive.full ? "the servers' disk is full" : "the servers' disk has room again");
    case 3:
    case 4:
      drive.hangs = drive.hangs > 0 ? 0 : random_.uniform(.005, .02);
      return note(drive.hangs > 0 ? "the servers' disk hangs at times" : "the servers' disk hangs no more");
    default:
      drive.failures = drive.failures > 0 ? 0 : random_.uniform(.05, .5);
      return note(drive.failures > 0 ? "the servers' disk reports errors" : "the servers' disk works again");
  }
}

void ServiceRun::change_plan() {
  if (!server_->ready || kind_.steady) return;
  Fleet fleet = what_.fleet;
  auto& c = fleet.classes[random_.below(fleet.classes.size())];
  c.count -= random_.between(0, 1);
  note("the fleet has " + std::to_string(c.count) + " devices of class " + c.name);
  replace(fleet);
}

void ServiceRun::replace(const Fleet& fleet) {
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
      simulation_.note(status.ok() ? "the plan is changed" : "no other plan: " + status.error().to_string());
    });
  });
}

void ServiceRun::end_faults() {
  simulation_.note("all faults end");
  network_.heal_all();
  network_.delays.spikes = 0;
  failing_.clear();
  simulation_.set_stalls(0, 0);
  simulation_.end_hold_ups();
  for (const auto& server : slots_) simulation_.freeze(server->process, 0);
  if (what_.disk) {
    what_.disk->full = false;
    simulation_.freeze(what_.disk->process, 0);
  }
  if (what_.drive) {
    what_.drive->full = false;
    what_.drive->failures = 0;
    what_.drive->hangs = 0;
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
  for (int i = 0; what_.has_store() && i < 100; ++i) {
    choose_server();
    if (server_->ready) break;
    sleep_ns(50 * kMs);
  }
  if (!server_->ready || kind_.steady) return;
  // Behind the changes that were asked for before, which may reach the server in any order.
  for (size_t i = 0; i < changes_.size(); ++i)
    while (changes_[i]->server == server_ && !changes_[i]->answered) sleep_ns(50 * kMs);
  replace(what_.fleet);
  // A server that was replaced meanwhile refuses: the one that leads is asked.
  for (int i = 0; what_.has_store() && i < 100 && !changes_.back()->done; ++i) {
    sleep_ns(50 * kMs);
    choose_server();
    const bool refused =
        changes_.back()->answered ? !changes_.back()->done : server_ != changes_.back()->server;
    if (refused && server_->ready) replace(what_.fleet);
  }
}

}  // namespace heddle
