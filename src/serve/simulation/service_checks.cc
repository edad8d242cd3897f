#include "service_checks.h"

#include <algorithm>
#include <utility>

#include "heddle/serve/live_plane.h"

namespace heddle {
namespace {

constexpr int64_t kPrompt = 20 * kMs;             // for what is done at once
constexpr int64_t kOtherGeneration = 3000 * kMs;  // in which runs of the plan before may have the devices

}  // namespace

void SessionChecks::fail(uint64_t stream, const std::string& why) {
  Simulation::current().fail("session " + std::to_string(stream) + ": " + why);
}

void SessionChecks::name_process(Process process, const std::string& name) {
  names_[process] = name;
  began_[process] = Simulation::current().now();
}

void SessionChecks::server_hears(Process worker, const std::string& address) {
  const Process server = Simulation::current().process();
  for (const auto& [number, s] : sessions_)
    if (s.server == server && s.address == address && !s.told && s.called >= began_[worker]) return;
  announced_.try_emplace({server, address}, Announcement{Simulation::current().now(), names_[worker]});
}

void SessionChecks::check_announcement(Process server, const Announcement& announcement) const {
  const int64_t since = Simulation::current().now() - announcement.at;
  if (since > kPrompt + disturbances_.slack_ns && disturbances_.until(server) < announcement.at &&
      !left_.contains(server))
    Simulation::current().fail("worker '" + announcement.worker +
                               "' has announced itself and is not called " + std::to_string(since / kMs) +
                               " ms later");
}

void SessionChecks::server_calls(uint64_t stream, const std::string& address) {
  auto& session = sessions_[stream];
  session.server = Simulation::current().process();
  session.address = address;
  session.called = Simulation::current().now();
  const auto it = announced_.find({session.server, address});
  if (it == announced_.end()) return;
  check_announcement(session.server, it->second);
  announced_.erase(it);
}

// No other session of the server that is open has the device.
void SessionChecks::check_not_elsewhere(uint64_t stream, const Session& session, Device device) const {
  for (const auto& [number, other] : sessions_)
    if (number != stream && !other.over && other.server == session.server && other.roles.contains(device))
      fail(stream, "device " + std::to_string(device.second) + " of plan " + std::to_string(device.first) +
                       " is given to worker '" + session.worker + "' while session " +
                       std::to_string(number) + " with worker '" + other.worker + "' has it");
}

void SessionChecks::server_sends(uint64_t stream, const worker::ToWorker& message) {
  auto& session = sessions_[stream];
  session.server = Simulation::current().process();
  if (session.over) return;  // it does not arrive
  if (message.has_load())
    for (const auto& role : message.load().roles()) {
      const Device device(message.load().generation(), role.device());
      check_not_elsewhere(stream, session, device);
      session.roles.insert(device);
    }
  uint64_t attempt = 0;
  if (message.has_run()) {
    const auto& run = message.run();
    attempt = run.attempt();
    const Device device(run.generation(), run.device());
    check_not_elsewhere(stream, session, device);
    if (!session.roles.contains(device))
      fail(stream, "a run for device " + std::to_string(run.device()) + ", which this session does not have");
    const RemotePatience patience;
    const auto least = static_cast<double>(run.expected_ns() + patience.least_ns);
    const double longest = std::max(least, patience.factor * static_cast<double>(run.expected_ns()));
    const auto [at, is_new] = session.running.emplace(
        device, Running{attempt, Simulation::current().now(), static_cast<int64_t>(longest)});
    if (!is_new)
      fail(stream, "device " + std::to_string(run.device()) + " is given run " + std::to_string(attempt) +
                       " while run " + std::to_string(at->second.attempt) + " has not ended");
  } else if (message.has_transfer()) {
    attempt = message.transfer().attempt();
  }
  if (attempt == 0) return;
  Simulation::current().note(
      (message.has_run() ? "run " : "transfer ") + std::to_string(attempt) + " to device " +
      std::to_string(message.has_run() ? message.run().device() : message.transfer().device()) +
      " in session " + std::to_string(stream));
  if (!attempts_[session.server].insert(attempt).second)
    fail(stream, "step " + std::to_string(attempt) + " is sent twice");
}

void SessionChecks::worker_gets(uint64_t stream, const worker::ToWorker& message) {
  auto& session = sessions_[stream];
  session.heard = Simulation::current().now();
  session.open |= message.has_open();
  if (session.worker.empty()) {
    session.worker_process = Simulation::current().process();
    session.worker = names_[session.worker_process];
  }
  if (message.has_run()) {
    const uint64_t last = std::exchange(session.generation, message.run().generation());
    if (last != 0 && last != session.generation) session.other_generation = session.heard;
  }
  const uint64_t attempt = message.has_run()        ? message.run().attempt()
                           : message.has_transfer() ? message.transfer().attempt()
                                                    : 0;
  if (attempt != 0 && !session.arrived.emplace(attempt, session.heard).second)
    fail(stream, "step " + std::to_string(attempt) + " arrives twice");
}

// A server gives a device one run at a time, so nothing else is to have it.
void SessionChecks::worker_sends(uint64_t stream, const worker::FromWorker& message) {
  const auto& session = sessions_[stream];
  if (!message.has_done() || message.done().measured_ns() <= 0 || left_.contains(session.worker_process))
    return;
  const auto it = session.arrived.find(message.done().attempt());
  if (it == session.arrived.end()) return;
  const int64_t at = it->second, now = Simulation::current().now();
  const bool alone = session.other_generation == 0 || at > session.other_generation + kOtherGeneration;
  const int64_t waited = now - at - message.done().measured_ns();
  if (alone && waited > kPrompt + disturbances_.slack_ns && disturbances_.until(session.worker_process) < at)
    fail(stream, "the device of run " + std::to_string(it->first) + " began it " +
                     std::to_string(waited / kMs) + " ms after it had come");
}

void SessionChecks::worker_ends(uint64_t stream) { sessions_[stream].open = false; }

void SessionChecks::server_gets(uint64_t stream, const worker::FromWorker& message) {
  auto& session = sessions_[stream];
  if (!message.has_done() || session.over) return;
  const uint64_t attempt = message.done().attempt();
  if (!session.arrived.contains(attempt))
    fail(stream, "worker '" + session.worker + "' reports step " + std::to_string(attempt) +
                     ", which it was not sent");
  if (!session.ended.insert(attempt).second)
    fail(stream, "worker '" + session.worker + "' reports step " + std::to_string(attempt) + " twice");
  Simulation::current().note(
      "step " + std::to_string(attempt) +
      (message.done().error().empty() ? " is done" : " failed: " + message.done().error()));
  for (const auto& [device, run] : session.running)
    if (run.attempt == attempt && is_overdue(session, run)) ++overdue_[session.server];
  std::erase_if(session.running, [attempt](const auto& entry) { return entry.second.attempt == attempt; });
  if (message.done().measured_ns() <= 0) return;
  ++runs_[{session.server, session.worker}];
  ++worker_runs_[session.worker_process];
  ++session.runs;
}

// So late that the server must have given it up before, since nothing held it up.
bool SessionChecks::is_overdue(const Session& session, const Running& run) const {
  return Simulation::current().now() - run.at > run.patience + kPrompt + disturbances_.slack_ns &&
         disturbances_.until(session.server) < run.at;
}

void SessionChecks::server_ends(uint64_t stream) {
  auto& session = sessions_[stream];
  session.over = true;
  session.roles.clear();
  session.running.clear();
}

void SessionChecks::server_is_told(uint64_t stream) { sessions_[stream].told = true; }

void SessionChecks::check_times(int64_t silence_ns) const {
  for (const auto& [entry, announcement] : announced_) check_announcement(entry.first, announcement);
  for (const auto& [number, s] : sessions_) {
    const int64_t silent = Simulation::current().now() -
                           std::max(s.heard, disturbances_.until(s.worker_process)) - disturbances_.slack_ns;
    if (s.open && !left_.contains(s.worker_process) && silent > silence_ns)
      fail(number, "worker '" + s.worker + "' keeps it, and has not heard of its server for " +
                       std::to_string(silent / kMs) + " ms");
  }
}

uint64_t SessionChecks::runs(Process server, const std::string& worker) const {
  const auto it = runs_.find({server, worker});
  return it == runs_.end() ? 0 : it->second;
}

uint64_t SessionChecks::runs(Process worker) const {
  const auto it = worker_runs_.find(worker);
  return it == worker_runs_.end() ? 0 : it->second;
}

uint64_t SessionChecks::runs_of_session(Process worker) const {
  for (const auto& [number, s] : sessions_)
    if (s.worker_process == worker && s.open && !s.over) return s.runs;
  return 0;
}

size_t SessionChecks::open_sessions(Process worker) const {
  size_t n = 0;
  for (const auto& [number, s] : sessions_) n += s.open && s.worker_process == worker;
  return n;
}

uint64_t SessionChecks::overdue(Process server) const {
  const auto it = overdue_.find(server);
  return it == overdue_.end() ? 0 : it->second;
}

uint64_t RequestChecks::sent(Process server, uint64_t digest, int64_t deadline) {
  requests_.push_back({server, digest, Simulation::current().now(), deadline});
  open_.insert(requests_.size() - 1);
  return requests_.size() - 1;
}

void RequestChecks::answered(uint64_t request, bool ok, uint64_t digest) {
  auto& r = requests_[request];
  auto& simulation = Simulation::current();
  if (r.answered) simulation.fail("request " + std::to_string(request) + " is answered twice");
  if (ok && (have_digests || digest != 0) && digest != r.digest)
    simulation.fail("request " + std::to_string(request) + " gets another one's answer");
  check_time(request);
  r.answered = true;
  r.ok = ok;
  open_.erase(request);
  if (crashed_.contains(r.server)) return;
  r.in_time = ok && simulation.now() <= r.deadline;
  in_time_ += r.in_time;
}

void RequestChecks::crashed(Process server) {
  crashed_.insert(server);
  std::erase_if(open_, [this, server](uint64_t r) { return requests_[r].server == server; });
}

void RequestChecks::check_time(uint64_t request) const {
  const auto& r = requests_[request];
  if (longest_ns == INT64_MAX || crashed_.contains(r.server) || disturbances_.until(r.server) > r.at) return;
  const int64_t late = Simulation::current().now() - r.deadline;
  if (late > longest_ns + kPrompt + disturbances_.slack_ns)
    Simulation::current().fail("request " + std::to_string(request) + " is without an answer for " +
                               std::to_string(late / kMs) + " ms after its deadline");
}

void RequestChecks::check_answered(int64_t grace_ns) const {
  auto& simulation = Simulation::current();
  for (const uint64_t r : open_) check_time(r);
  for (const uint64_t r : open_)
    if (requests_[r].deadline + grace_ns < simulation.now())
      simulation.fail("request " + std::to_string(r) + " has no answer " +
                      std::to_string((simulation.now() - requests_[r].deadline) / kMs) +
                      " ms after its deadline");
}

size_t RequestChecks::open(Process server) const {
  return static_cast<size_t>(
      std::ranges::count_if(open_, [this, server](uint64_t r) { return requests_[r].server == server; }));
}

uint64_t RequestChecks::requests(Process server) const {
  uint64_t n = 0;
  for (const auto& r : requests_) n += r.server == server;
  return n;
}

uint64_t RequestChecks::answers(Process server) const {
  uint64_t n = 0;
  for (const auto& r : requests_) n += r.server == server && r.ok;
  return n;
}

double RequestChecks::attainment(int64_t since_ns) const {
  uint64_t all = 0, good = 0;
  for (const auto& r : requests_) {
    if (r.at < since_ns) continue;
    ++all;
    good += r.in_time;
  }
  for (const int64_t at : refused_) all += at >= since_ns;
  return all == 0 ? 1 : static_cast<double>(good) / static_cast<double>(all);
}

}  // namespace heddle
