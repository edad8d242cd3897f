// What a run looks at all the time: that memory and queues stay bounded, that no device works for two servers, and that
// nobody counts more than the devices did.
#include <string>

#include "heddle/base/json.h"
#include "heddle/base/sync.h"
#include "service_run.h"

namespace heddle {
namespace {

constexpr int64_t kLookNs = 10 * kMs;
// Looks at workers for one at the servers, whose status takes longer to make.
constexpr int kLooksOfWorkers = 100;

// Beside those of batches that were given up, which stay for some minutes: none of their requests is in time.
constexpr size_t kMostMaps = 100;
// The plan in use, the next one, those that end, and what a server before has left.
constexpr size_t kMostPlans = 8;
// A worker has at most 6 devices, and each a place in up to two plans at work. Each runs and receives once at a time.
constexpr size_t kMostSteps = 24;
// The inputs of a batch come right before its run.
constexpr size_t kMostOpenInputs = 12;
// Nothing ends a session for 2 leases, so answers of that time wait: ends of short runs, and some for each ping.
constexpr size_t kMostUnsent = 256;
// Calls that wait while the worker stands still for 4 s: of each of 3 servers one in each lease, at least 0.3 s long.
constexpr size_t kMostSessions = 40;

}  // namespace

void ServiceRun::look_often() {
  for (int i = 0; sending_; ++i) {
    sleep_ns(kLookNs);
    for (const auto& worker : all_workers_) look_at(*worker);
    if (i % kLooksOfWorkers == 0)
      for (const auto& server : slots_) look_at(*server);
  }
}

void ServiceRun::look_at(const SimulatedWorker& worker) {
  if (worker.crashed || !worker.worker) return;
  WorkerCounters now;
  if (!simulation_.look([&now, &worker] { now = worker.worker->counters(); })) return;
  const auto fail = [this, &worker](const std::string& what) {
    simulation_.fail("worker '" + worker.name + "' " + what);
  };
  const auto check = [&fail](const char* what, size_t there, size_t most) {
    if (there > most)
      fail("keeps " + std::to_string(there) + " " + what + ", more than " + std::to_string(most));
  };
  check("feature maps", now.maps_kept, kMostMaps + requests_.sent() - requests_.in_time());
  check("plans", now.plans, kMostPlans);
  check("steps under way", now.steps, kMostSteps);
  check("inputs without a run", now.open_inputs, kMostOpenInputs);
  check("messages that are not sent", now.unsent, kMostUnsent);
  check("sessions", sessions_.open_sessions(worker.process), kMostSessions);
  if (now.stray_runs > 0)
    fail("has " + std::to_string(now.stray_runs) + " runs on its devices for a session that it has no more");
  if (const auto reported = sessions_.runs(worker.process); reported > now.timed_runs)
    fail("has reported " + std::to_string(reported) + " runs, and its devices did " +
         std::to_string(now.timed_runs));
}

void ServiceRun::look_at(const SimulatedServer& server) {
  if (!server.ready) return;
  Json status;
  if (!simulation_.look([&status, &server] { status = server.service.status(); })) return;
  size_t in_work = 0;
  for (const auto& model : status["models"]) in_work += model["in_plane"].get<size_t>();
  if (const auto open = requests_.open(server.process); in_work > open)
    simulation_.fail(server.name + " has " + std::to_string(in_work) + " requests in work, and " +
                     std::to_string(open) + " have no answer");
}

}  // namespace heddle
