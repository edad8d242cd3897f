#include "service_checks.h"

namespace heddle {

void SessionChecks::fail(uint64_t stream, const std::string& why) {
  Simulation::current().fail("session " + std::to_string(stream) + ": " + why);
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
    const auto [at, is_new] = session.running.emplace(device, attempt);
    if (!is_new)
      fail(stream, "device " + std::to_string(run.device()) + " is given run " + std::to_string(attempt) +
                       " while run " + std::to_string(at->second) + " has not ended");
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
  session.sent.insert(attempt);
}

void SessionChecks::worker_gets(uint64_t stream, const worker::ToWorker& message) {
  auto& session = sessions_[stream];
  if (session.worker.empty()) session.worker = names_[Simulation::current().process()];
  const uint64_t attempt = message.has_run()        ? message.run().attempt()
                           : message.has_transfer() ? message.transfer().attempt()
                                                    : 0;
  if (attempt != 0 && !session.arrived.insert(attempt).second)
    fail(stream, "step " + std::to_string(attempt) + " arrives twice");
}

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
  std::erase_if(session.running, [attempt](const auto& entry) { return entry.second == attempt; });
  runs_[{session.server, session.worker}] += message.done().measured_ns() > 0;
}

void SessionChecks::server_ends(uint64_t stream) {
  auto& session = sessions_[stream];
  session.over = true;
  session.roles.clear();
  session.running.clear();
}

uint64_t SessionChecks::runs(Process server, const std::string& worker) const {
  const auto it = runs_.find({server, worker});
  return it == runs_.end() ? 0 : it->second;
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
  if (ok && digest != 0 && digest != r.digest)
    simulation.fail("request " + std::to_string(request) + " gets another one's answer");
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

void RequestChecks::check_answered(int64_t grace_ns) const {
  auto& simulation = Simulation::current();
  for (const uint64_t r : open_)
    if (requests_[r].deadline + grace_ns < simulation.now())
      simulation.fail("request " + std::to_string(r) + " has no answer " +
                      std::to_string((simulation.now() - requests_[r].deadline) / 1'000'000) +
                      " ms after its deadline");
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
  return all == 0 ? 1 : static_cast<double>(good) / static_cast<double>(all);
}

}  // namespace heddle
