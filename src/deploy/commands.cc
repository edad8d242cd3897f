// The command lines of a deployment's processes, the same for all engines.
#include "commands.h"

#include "heddle/base/json.h"

namespace heddle {
namespace {

// "2s": whole seconds, or the shortest decimal.
std::string seconds_text(double seconds) {
  auto text = json_text(Json(seconds));
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "s";
}

using Words = std::vector<std::string>;
void add(Words& to, const Words& words) { to.insert(to.end(), words.begin(), words.end()); }

std::string in_folder(const std::string& folder, const char* name) { return folder + "/" + name; }

void add_tls(const Workloads& w, const Places& places, Words& command) {
  if (!has_tls(w)) return;
  add(command, {"--tls-cert", in_folder(places.secrets, kTlsCertificate), "--tls-key",
                in_folder(places.secrets, kTlsKey)});
}

}  // namespace

bool has_tls(const Workloads& workloads) { return workloads.settings.tls.value_or(true); }

std::vector<std::string> secret_files(const Workloads& workloads) {
  std::vector<std::string> names;
  if (workloads.settings.tokens) {
    names.emplace_back(kClientToken);
    if (workloads.is_fleet) names.emplace_back(kWorkerToken);
  }
  if (has_tls(workloads)) names.insert(names.end(), {kTlsCertificate, kTlsKey, "ca.crt"});
  return names;
}

std::vector<std::string> server_command(const Workloads& w, const Places& places) {
  const auto& s = w.settings;
  Words command = {places.program, "serve", in_folder(places.files, w.is_fleet ? "fleet.yaml" : "plan.json")};
  if (w.is_fleet) add(command, {"--plan", in_folder(places.files, "plan.yaml")});
  add(command, {"--host", places.bind, "--port", std::to_string(s.port), "--grpc-port",
                std::to_string(s.grpc_port), "--drain", seconds_text(w.drain_s)});
  add_tls(w, places, command);
  if (s.tokens) add(command, {"--token-file", in_folder(places.secrets, kClientToken)});
  if (!w.is_fleet) return command;
  if (places.bus.empty())
    add(command, {"--worker-port", std::to_string(s.worker_port), "--worker-host", places.bind});
  else
    add(command, {"--bus", places.bus, "--bucket", w.name});
  if (s.standbys > 0) add(command, {"--state", places.bus});
  add(command, {"--wait", seconds_text(s.wait_s)});
  if (s.tokens) add(command, {"--worker-token-file", in_folder(places.secrets, kWorkerToken)});
  if (has_tls(w)) add(command, {"--worker-ca", in_folder(places.secrets, "ca.crt")});
  return command;
}

std::vector<std::string> worker_command(const Workloads& w, const WorkerGroup& group, const Places& places) {
  const auto& s = w.settings;
  Words command = {places.program, "worker"};
  if (places.bus.empty())
    add(command, {"--connect", places.server + ":" + std::to_string(s.worker_port)});
  else
    add(command, {"--bus", places.bus, "--bucket", w.name});
  std::string devices;
  for (const auto& name : group.settings.names) devices += (devices.empty() ? "" : "+") + name;
  if (devices.empty()) devices = std::to_string(group.settings.per_worker);
  add(command,
      {"--devices", group.device_class + "=" + devices, "--name", places.worker_name, "--host", places.bind});
  if (!places.worker_port.empty()) add(command, {"--port", places.worker_port});
  add(command, {"--advertise", places.advertise, "--drain", seconds_text(w.drain_s)});
  if (!s.models.empty()) add(command, {"--models", s.models});
  add_tls(w, places, command);
  if (has_tls(w)) add(command, {"--ca", in_folder(places.secrets, "ca.crt")});
  if (s.tokens) add(command, {"--token-file", in_folder(places.secrets, kWorkerToken)});
  return command;
}

std::string over_hosts(const Workloads& w, const char* engine) {
  return "the plan runs on " + std::to_string(w.hosts.size()) +
         " hosts by MPI: all ranks start at once, on hosts that the plan chose, and end together. " + engine +
         " starts and restarts each process by itself; use --on slurm, or serve a fleet";
}

}  // namespace heddle
