// Settings of a deployment that no plan knows, such as images, node labels and hosts; read from a file (YAML or JSON,
// docs/deploy.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// Of one device class.
struct ClassSettings {
  int64_t per_worker = 1;  // devices of one worker
  int64_t spare = 0;       // devices beside those of the plan, for workers that are lost
  std::vector<std::string>
      names;  // the devices' names in a worker ("gpu0"), per_worker of them; empty: by count
  std::vector<std::string>
      hosts;           // with these devices, for Slurm and systemd; empty: Slurm chooses, this host
  int64_t cpus = 0;    // whole cores of one worker; 0: the engine's default
  std::string memory;  // of one worker ("8Gi"); empty: no request
  // Kubernetes
  std::string resource;  // extended resource of one device ("nvidia.com/gpu"); "none": none
  std::map<std::string, std::string> select;  // labels of its nodes; empty: heddle/class=CLASS
  // Slurm
  std::string partition, gres, constraint;  // gres is that of one device ("gpu:l4")
};

struct DeploySettings {
  std::string name;     // of the deployment, empty: the fleet's or plan's
  std::string program;  // empty: "heddle"; for systemd /usr/bin/heddle
  std::string image = "heddle:latest";
  std::string models;  // folder with the models' files where they are served; empty: as in the fleet file
  std::string host;    // of the server, for systemd
  int64_t port = 8000, grpc_port = 8001, worker_port = 9000, worker_listen_port = 9100;
  double drain_s = 0;       // 0: from the SLOs
  double wait_s = 600;      // for workers, when the server starts
  std::optional<bool> tls;  // default: yes; Ray: no
  bool tokens = true;
  int64_t standbys = 0;  // servers beside the one that leads; they share their state on `bus`
  int64_t server_cpus = 2;
  std::string server_memory = "4Gi";
  std::string
      bus;  // empty: workers announce themselves to the server; "nats": a NATS server of its own; a URL
  // Kubernetes
  std::string namespace_name = "default", models_claim, nats_image = "nats:2.10", priority_class;
  // Slurm
  std::string partition, account, time = "24:00:00";
  std::string server_constraint;  // feature of the servers' nodes; on Ray: their resource is heddle_ and this
  std::map<std::string, ClassSettings> classes;
};

// Strict: an unknown key is an error with file, line and the nearest spelling.
Result<DeploySettings> read_deploy_settings(const std::string& path);

}  // namespace heddle
