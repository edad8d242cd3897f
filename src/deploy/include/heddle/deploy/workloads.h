// The shared model of a deployment: the processes that a plan needs, their devices, and how they find and trust each
// other. The renderers print it; the plan decides how many devices of which class there are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/deploy/deploy_settings.h"

namespace heddle {

// Equal workers (`heddle worker`), all with devices of one class. A server gives each of its plan's devices to a worker
// with the class free, so workers are grouped by class and not by pool.
struct WorkerGroup {
  std::string name;  // "mixed-fleet-l4": unique, a DNS label
  std::string device_class;
  int64_t used = 0;     // devices that the plan uses
  int64_t workers = 0;  // processes of settings.per_worker devices; together at least used + settings.spare
  bool is_gpu = false;  // by the catalogue
  ClassSettings settings;

  int64_t devices() const { return workers * settings.per_worker; }
};

// A process of a plan of one model: a host, with the devices of it that the plan uses.
struct PlanHost {
  std::string name;
  std::string host_class;            // equal for hosts whose devices have equal classes: "V100+cpu8"
  std::vector<std::string> devices;  // by name
  int64_t gpus = 0;                  // of these
};

struct Workloads {
  std::string name;  // a DNS label
  bool is_fleet = true;
  DeploySettings settings;
  double drain_s = 10;                       // in which accepted requests are answered or late
  std::vector<WorkerGroup> groups;           // of a fleet, in its order
  std::vector<PlanHost> hosts;               // of a plan, in its cluster's order
  std::map<std::string, std::string> files;  // that the server reads, by name: its fleet and plan
  std::vector<std::string> notes;  // for people: what differs from the fleet file, what is not computed
};

// Reads WHAT: a fleet file with the plan file `plan` (empty: planned by auto), or a plan file of one model. Errors: an
// unreadable file, a plan that the checker rejects, settings of a class that the fleet does not have.
Result<Workloads> read_workloads(const std::string& what, const std::string& plan,
                                 const DeploySettings& settings);

// Where the processes of a deployment are, as their command lines say it.
struct Places {
  std::string program;
  std::string files, secrets;  // folders
  std::string bind;            // address to listen on
  std::string server;          // host at which workers reach the server
  std::string bus;             // NATS; empty: the server itself
  std::string worker_name, advertise;
  std::string worker_port;  // that a worker listens on; empty: any free one
};
std::vector<std::string> server_command(const Workloads& workloads, const Places& places);
std::vector<std::string> worker_command(const Workloads& workloads, const WorkerGroup& group,
                                        const Places& places);

// Names in the folder of secrets.
inline constexpr const char* kClientToken = "client-token";
inline constexpr const char* kWorkerToken = "worker-token";
inline constexpr const char* kTlsCertificate = "tls.crt";
inline constexpr const char* kTlsKey = "tls.key";
bool has_tls(const Workloads& workloads);
// The files of these that the deployment uses, and ca.crt, that clients trust.
std::vector<std::string> secret_files(const Workloads& workloads);

}  // namespace heddle
