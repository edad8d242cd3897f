// heddle worker: a process with devices that a served fleet uses.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/variants.h"
#include "heddle/serve/worker.h"
#include "heddle/session/clusters.h"
#include "log_flags.h"
#include "reachable.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct WorkerFlags {
  std::string bus, bucket = "heddle", name, host = "127.0.0.1", advertise, models, cluster;
  std::string tls_cert, tls_key, ca_file, token_file;
  std::vector<std::string> connect, devices;
  int64_t port = 0;
  bool share_cores = false;
  double lease_s = 1, slowdown = 1, drain_s = 10;
  LogFlags log;
};

struct ClassDevices {
  std::map<std::string, int64_t> counts;                  // by class
  std::map<std::string, std::vector<std::string>> names;  // of those that were named
};

// "cpu0+cpu1"; empty where it is no such list.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  size_t at = 0;
  while (at <= text.size()) {
    const auto end = std::min(text.find('+', at), text.size());
    if (end == at) return {};
    names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// CLASS=N or CLASS=NAME+NAME (devices of this host), several of them with commas; a class that is named twice
// is an error.
Result<ClassDevices> class_devices(const std::vector<std::string>& texts) {
  ClassDevices out;
  for (const auto& list : texts)
    for (const auto& text : split_list(list)) {
      const auto eq = text.rfind('=');
      const auto name = text.substr(0, eq), value = eq == std::string::npos ? "" : text.substr(eq + 1);
      const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
      const auto names = number ? std::vector<std::string>() : names_in(value);
      if (name.empty() || (number ? value.size() > 7 || std::stoll(value) < 1 : names.empty()))
        return invalid_input("--devices " + text +
                             ": expected CLASS=N with N from 1, such as L4=2, or the "
                             "devices of this host by name, such as fast=cpu0+cpu1");
      const int64_t count = number ? std::stoll(value) : static_cast<int64_t>(names.size());
      if (!out.counts.emplace(name, count).second)
        return invalid_input("--devices " + text + ": that class was given twice");
      if (!number) out.names[name] = names;
    }
  if (out.counts.empty())
    return invalid_input("a worker needs --devices CLASS=N, its devices of the fleet's classes");
  return out;
}

Status check_names(const std::map<std::string, std::vector<std::string>>& names, const Cluster& cluster) {
  for (const auto& [device_class, devices] : names)
    for (const std::string& name : devices) {
      if (device_or_variant(cluster, name)) continue;
      std::vector<std::string> known;
      for (const Device& device : cluster.devices()) known.push_back(device.name);
      return invalid_input("--devices " + device_class + "=" + name + ": cluster '" + cluster.name() +
                           "' has " + join_names(known, 40) + did_you_mean(name, known));
    }
  return {};
}

std::string name_by_default() {
  char host[64] = {};
  std::string name = ::gethostname(host, sizeof host - 1) == 0 ? host : "worker";
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) c = '-';
  return name.substr(0, 48) + "-" + std::to_string(::getpid());
}

Result<std::unique_ptr<Announcer>> announcer_of(const WorkerFlags& o, const WorkerSecurity& security,
                                                const CancelToken& cancel) {
  if (o.connect.empty() == o.bus.empty())
    return invalid_input(
        "a worker needs either --connect HOST:PORT, as `heddle serve` prints it, or --bus "
        "nats://HOST:PORT");
  if (!o.connect.empty()) {
    std::vector<std::unique_ptr<Announcer>> servers;
    for (const std::string& address : o.connect) {
      HEDDLE_ASSIGN_OR_RETURN(servers.emplace_back(), registry_announcer(address, security));
    }
    return several_announcers(std::move(servers));
  }
  BusOptions options;
  options.lease_s = o.lease_s;
  HEDDLE_ASSIGN_OR_RETURN(auto bus,
                          when_reachable(o.bus, cancel, [&] { return nats_bus(o.bus, o.bucket, options); }));
  return std::unique_ptr<Announcer>(std::move(bus));
}

void print_counters(const WorkerOptions& options, const WorkerCounters& c, bool json) {
  if (json) {
    print("{}\n", Json{{"name", options.name},
                       {"runs", c.runs},
                       {"rows", c.rows},
                       {"sessions", c.sessions},
                       {"maps_sent", c.maps_sent},
                       {"maps_received", c.maps_received},
                       {"map_bytes_received", c.map_bytes_received}}
                      .dump());
  } else {
    print("worker {}: {} runs, {} feature maps sent and {} received, {}\n", options.name, c.runs, c.maps_sent,
          c.maps_received, counted(c.sessions, "session"));
  }
}

// Logs what changes until `cancel` is raised.
void follow_worker(const Worker& worker, const std::string& name, const CancelToken& cancel) {
  std::string error;
  bool connected = false;
  while (!cancel.cancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto c = worker.counters();
    if (std::exchange(error, c.announcement_error) != c.announcement_error && !error.empty())
      log_line(LogLevel::kWarning, name + error + "; trying again");
    if (std::exchange(connected, c.connected) != c.connected)
      log_line(connected ? LogLevel::kInfo : LogLevel::kWarning,
               name + (connected ? "a server is connected" : "the server is gone"));
  }
}

Result<int> run_worker(const WorkerFlags& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(o.log.begin(invocation));
  WorkerOptions options;
  options.name = o.name.empty() ? name_by_default() : o.name;
  options.host = o.host;
  options.port = static_cast<int>(o.port);
  options.advertise = o.advertise;
  options.slowdown = o.slowdown;
  HEDDLE_ASSIGN_OR_RETURN(auto devices, class_devices(o.devices));
  options.devices = std::move(devices.counts);
  options.device_names = std::move(devices.names);
  options.models = o.models;
  if (!o.cluster.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(options.cluster, open_cluster(o.cluster));
    HEDDLE_RETURN_IF_ERROR(check_names(options.device_names, *options.cluster));
  }
  options.share_cores = o.share_cores;
  HEDDLE_ASSIGN_OR_RETURN(options.security,
                          read_worker_security(o.tls_cert, o.tls_key, o.ca_file, o.token_file));
  HEDDLE_ASSIGN_OR_RETURN(const auto announcer, announcer_of(o, options.security, invocation.cancel));
  HEDDLE_ASSIGN_OR_RETURN(const auto worker, Worker::start(options, *announcer));
  if (!invocation.json && invocation.progress != nullptr) {
    print("worker {} on port {}, Ctrl-C stops\n", options.name, worker->port());
    std::fflush(stdout);
  }
  follow_worker(*worker, "worker " + options.name + ": ", invocation.cancel);
  log_line(LogLevel::kInfo, "worker " + options.name + ": stopping once its runs have ended");
  worker->drain(o.drain_s);
  if (invocation.progress != nullptr || invocation.json)
    print_counters(options, worker->counters(), invocation.json);
  return kExitDone;
}

}  // namespace

RunFn setup_worker(Command& command) {
  auto o = std::make_shared<WorkerFlags>();
  command.list("--connect", o->connect,
               "announce to this server, HOST:PORT of its --worker-port (repeatable: its standbys, too)");
  command.option("--bus", o->bus, "announce on this NATS server with JetStream, nats://HOST:PORT");
  command.option("--bucket", o->bucket, "the fleet's bucket on the bus (default heddle)");
  command.seconds("--lease", o->lease_s,
                  "with --bus: time after which the bus removes a worker that does not renew its entry "
                  "(default 1s)",
                  .1, 3600);
  command.list("--devices", o->devices,
               "CLASS=N: N devices of the class; CLASS=cpu0+cpu1: these devices of this host (repeatable)");
  command.option("--cluster", o->cluster,
                 "cluster file with these devices (default: this host's, as `heddle devices` finds them)");
  command.option("--models", o->models,
                 "folder with the fleet's model files, by their names (default: the fleet file's paths)");
  command.option("--name", o->name, "unique among the fleet's workers (default: this host and process)");
  command.option("--host", o->host, "address to listen on (default 127.0.0.1: this machine alone)");
  command.option("--port", o->port, "port to listen on (default: any free one)", 0, 65535);
  command.option("--advertise", o->advertise, "host that others reach it by (default: --host)");
  command.option("--tls-cert", o->tls_cert,
                 "encrypt: this worker's certificates (PEM); server and workers all do, or none");
  command.option("--tls-key", o->tls_key, "the certificate's private key (PEM, no passphrase)");
  command.option("--ca", o->ca_file,
                 "trust servers and workers with certificates signed by these (PEM; default: --tls-cert)");
  command.option("--token-file", o->token_file,
                 "authenticate with this file's content, as --worker-token-file of the server");
  command.seconds("--drain", o->drain_s,
                  "time that runs have to finish after Ctrl-C or SIGTERM; new ones are refused (default 10s)",
                  0, 3600);
  command.flag("--share-cores", o->share_cores,
               "let its devices share cores with other workers on this host that have this flag, too");
  command.option("--slowdown", o->slowdown,
                 "slow its devices down by this factor (default 1; at least 1 for devices that compute)", .01,
                 1000);
  o->log.declare(command);
  return [o](const Invocation& invocation) { return run_worker(*o, invocation); };
}

}  // namespace heddle::cli
