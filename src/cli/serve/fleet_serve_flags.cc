#include "fleet_serve_flags.h"

#include "heddle/base/log.h"
#include "heddle/serve/machine_fleet.h"
#include "heddle/session/clusters.h"
#include "reachable.h"

namespace heddle::cli {

void ServeWorkerFlags::declare(Command& command) {
  command.option("--workers", workers,
                 "fleet: start this many workers here; they share the fleet's devices evenly", 1, 256);
  command.option("--worker-port", worker_port,
                 "fleet: accept workers on this port; start them with --connect (0: any free port)", 0,
                 65535);
  command.option("--worker-host", worker_host,
                 "address that --worker-port listens on (default 127.0.0.1: this machine alone)");
  command.option("--bus", bus, "fleet: find workers on a NATS server with JetStream, nats://HOST:PORT");
  command.option("--bucket", bucket, "the fleet's bucket on the bus (default heddle)");
  command.option(
      "--worker-ca", ca_file,
      "with --tls-cert: trust workers with certificates signed by these (PEM; default: --tls-cert)");
  command.option("--worker-token-file", token_file,
                 "authenticate to workers with this file's content, and demand the same of them");
  command.seconds("--lease", lease_s, "silence after which a worker counts as lost (default 1s)", .1, 3600);
  command.seconds("--wait", wait_s, "time to wait for workers with all devices of the plan (default 30s)", 0,
                  86400);
}

Result<std::shared_ptr<const Cluster>> ServeWorkerFlags::cluster_for(const Fleet& fleet) const {
  if (cluster.empty()) return std::shared_ptr<const Cluster>();
  if (any() && !workers)
    return invalid_input(
        "--cluster " + cluster +
        ": workers that you start yourself have devices of their own; give it to `heddle worker`");
  if (!has_model_files(fleet))
    return invalid_input("--cluster " + cluster +
                         ": no model of the fleet has a file, so its devices are emulated");
  return open_cluster(cluster);
}

Status ServeWorkerFlags::check() const {
  if (any() || (ca_file.empty() && token_file.empty())) return {};
  return invalid_input("--worker-ca and --worker-token-file belong to --workers, --worker-port or --bus");
}

Result<WorkerSecurity> ServeWorkerFlags::security(const std::string& certificate_file,
                                                  const std::string& key_file) const {
  return read_worker_security(certificate_file, key_file, ca_file, token_file);
}

Result<std::unique_ptr<ServedWorkers>> start_workers(const ServeWorkerFlags& flags, const Fleet& fleet,
                                                     const std::string& certificate_file,
                                                     const std::string& key_file, uint64_t term,
                                                     const CancelToken& cancel) {
  if (!flags.bus.empty() && flags.worker_port)
    return invalid_input(
        "--bus and --worker-port exclude each other: workers announce themselves in one place");
  auto out = std::make_unique<ServedWorkers>();
  HEDDLE_ASSIGN_OR_RETURN(const auto security, flags.security(certificate_file, key_file));
  BusOptions bus;
  bus.lease_s = flags.lease_s;
  std::vector<std::string> to;
  if (flags.bus.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out->bus, in_process_bus(bus));
    HEDDLE_ASSIGN_OR_RETURN(
        out->registry,
        WorkerRegistry::start(flags.worker_host, static_cast<int>(flags.worker_port.value_or(0)), *out->bus,
                              security, [](const std::string& line) { log_line(LogLevel::kWarning, line); }));
    const auto address = flags.worker_host + ":" + std::to_string(out->registry->port());
    to = {"--connect", address};
    if (flags.worker_port && !flags.workers)
      log_line(LogLevel::kInfo,
               "waiting for workers: heddle worker --connect " + address + " --devices CLASS=N");
  } else {
    HEDDLE_ASSIGN_OR_RETURN(
        out->bus, when_reachable(flags.bus, cancel, [&] { return nats_bus(flags.bus, flags.bucket, bus); }));
    to = {"--bus", flags.bus, "--bucket", flags.bucket, "--lease", std::to_string(flags.lease_s)};
  }
  // Workers that are started here show what the server shows.
  const auto add = [&to](const char* flag, const std::string& file) {
    if (!file.empty()) to.insert(to.end(), {flag, file});
  };
  add("--tls-cert", certificate_file);
  add("--tls-key", key_file);
  add("--ca", flags.ca_file);
  add("--token-file", flags.token_file);
  add("--cluster", flags.cluster);
  if (logs(LogLevel::kDebug)) add("--log-level", "debug");
  WorkerPoolOptions pool;
  pool.security = security;
  pool.lease_s = flags.lease_s;
  pool.term = term;
  HEDDLE_ASSIGN_OR_RETURN(out->pool, WorkerPool::create(out->bus, pool));
  if (flags.workers) {
    std::map<std::string, int64_t> devices;
    int64_t number = 0;
    for (const auto& c : fleet.classes)
      if (c.count > 0) devices[c.name] = c.count;
    for (const auto& part : divide_devices(devices, *flags.workers)) {
      const auto name = "worker-" + std::to_string(number++);
      if (part.empty())
        return invalid_input("--workers " + std::to_string(*flags.workers) +
                             ": the fleet has too few devices for this many workers");
      HEDDLE_RETURN_IF_ERROR(out->processes.start(name, part, to));
    }
  }
  return out;
}

void ServeDriftFlags::declare(Command& command) {
  command.option("--replan-drift", share,
                 "fleet: if a pool's measured time over the plan's stays outside 1/(1+SHARE) to 1+SHARE, "
                 "correct the times, plan again and use the new plan (default: only on request)",
                 .01, 100);
  command.seconds("--drift-time", drift_time_s,
                  "with --replan-drift: time for which the pool must be outside (default 5s)", .05, 86400);
  command.option("--drift-runs", drift_runs,
                 "with --replan-drift: runs over which the ratio is taken, and for which it must be "
                 "outside (default 50)",
                 1, 1000000);
  command.seconds("--trial", trial_s,
                  "time after which the new plan is compared with the old one, which returns if fewer "
                  "requests are in time (default 10s; 0: never)",
                  0, 86400);
  command.option("--trial-margin", margin, "with --trial: tolerated fall of the share in time (default .05)",
                 0, 1);
  command.flag("--try-changes", try_changes,
               "fleet: requested plans are on trial, too, if the old one is still possible");
  command.option("--device-times", device_times,
                 "fleet: emulated devices take their times from this fleet file, while plans use FLEET's");
}

bool ServeDriftFlags::any() const {
  return share >= 0 || drift_time_s >= 0 || trial_s >= 0 || margin >= 0 || drift_runs || try_changes ||
         !device_times.empty();
}

Status ServeDriftFlags::set(FleetControlOptions& options) const {
  if (share < 0 && (drift_time_s >= 0 || drift_runs))
    return invalid_input("--drift-time and --drift-runs need --replan-drift SHARE");
  if (share < 0 && !try_changes && (trial_s >= 0 || margin >= 0))
    return invalid_input(
        "--trial and --trial-margin need --replan-drift SHARE or --try-changes: no other plan is on "
        "trial");
  if (try_changes && trial_s == 0)
    return invalid_input("--try-changes and --trial 0 exclude each other: 0 keeps every plan");
  if (share >= 0) options.drift.share = share;
  if (drift_time_s >= 0) options.drift.hold_s = drift_time_s;
  if (drift_runs) options.drift.window_runs = static_cast<uint64_t>(*drift_runs);
  if (trial_s >= 0) options.trial.window_s = trial_s;
  if (margin >= 0) options.trial.margin = margin;
  options.try_changes = try_changes;
  if (!device_times.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(options.device_times, read_fleet(device_times));
  }
  return {};
}

}  // namespace heddle::cli
