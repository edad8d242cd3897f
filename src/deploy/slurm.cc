// Slurm: one heterogeneous job, a component for the server and one for each class of devices; for a plan over hosts a
// component for each class of hosts, and MPI's daemons started by srun.
#include <algorithm>
#include <cmath>

#include "commands.h"
#include "renderers.h"

namespace heddle {
namespace {

// The batch script gets its signal this long before the time limit, beside the time to drain.
constexpr int kLimitNotice_s = 30;

constexpr const char* kInFolder =
    "cd \"$SLURM_SUBMIT_DIR\"\n"
    "if [ ! -f files.txt ]; then\n"
    "  echo \"$SLURM_SUBMIT_DIR is not the deployment's folder: go there, then submit\" >&2\n"
    "  exit 2\n"
    "fi\n";

// Runs a command, again when it fails, until SIGTERM or SIGUSR1, upon which the command drains. The batch script sends
// SIGUSR1, because srun passes it on, whereas SIGTERM makes srun kill its tasks. It reaches all processes of a task.
std::string kept_running(const std::string& what, const std::string& command) {
  return "#!/bin/bash\n# " + what +
         ", started anew when it fails. SIGTERM and SIGUSR1 drain it.\n"
         "child=\n"
         "stopping=\n"
         "trap 'stopping=1' TERM INT  # Slurm sends them to all processes of a step\n"
         "trap 'stopping=1; [ -z \"$child\" ] || kill -TERM \"$child\"' USR1\n"
         "while [ -z \"$stopping\" ]; do\n"
         "  (trap '' USR1; exec " +
         replaced_all(command, "\n  ", "\n    ") +
         ") &\n"
         "  child=$!\n"
         "  wait \"$child\"\n"
         "  status=$?\n"
         "  # A signal ends the wait before the child has ended.\n"
         "  while kill -0 \"$child\" 2>/dev/null; do\n"
         "    wait \"$child\"\n"
         "    status=$?\n"
         "  done\n"
         "  # 2: bad flags or files, which no second try makes better.\n"
         "  if [ \"$status\" -eq 2 ]; then exit 2; fi\n"
         "  if [ -z \"$stopping\" ]; then sleep 1; fi\n"
         "done\n"
         "exit \"$status\"\n";
}

class Slurm {
 public:
  explicit Slurm(const Workloads& w) : w_(w), s_(w.settings) {}

  DeployFiles fleet_files() const {
    DeployFiles out = w_.files;
    out["fleet.sbatch"] = fleet_batch();
    out["server.sh"] = kept_running("The server", shell_command(server_command(w_, places())));
    for (const auto& g : w_.groups) {
      Places p = places();
      p.server = variable("$HEDDLE_SERVER");
      p.worker_name = suffix(g) + "-" + variable("$SLURM_JOB_ID-$HEDDLE_NUMBER");
      p.advertise = variable("$(hostname)");
      out[worker_script(g)] = kept_running("A worker of " + replaced_all(g.device_class, "\n", " "),
                                           shell_command(worker_command(w_, g, p)));
    }
    add_secrets(out);
    return out;
  }

  DeployFiles plan_files() const {
    DeployFiles out = w_.files;
    const auto ordered = hosts_by_class();
    auto command = server_command(w_, places());
    std::string batch = header("plan") + components(ordered);
    batch += "\nset -u\n" + std::string(kInFolder) + make_secrets(ordered.size());
    if (w_.hosts.size() > 1) {
      std::string devices;
      for (const auto& hosts : ordered)
        for (const auto* h : hosts) {
          devices += devices.empty() ? "" : ";";
          for (size_t d = 0; d < h->devices.size(); ++d) devices += (d == 0 ? "" : ",") + h->devices[d];
        }
      command.insert(command.end(), {"--rank-devices", devices});
      out["srun-agent.sh"] = agent();
      batch +=
          "# MPI's daemons are started by srun, on all components; rank 0 is on the first host.\n"
          "for g in $(seq 0 $((${SLURM_HET_SIZE:-1} - 1))); do\n"
          "  list=SLURM_JOB_NODELIST_HET_GROUP_$g\n"
          "  scontrol show hostnames \"${!list:-$SLURM_JOB_NODELIST}\" | sed 's/$/ slots=1/'\n"
          "done >\"hosts.$SLURM_JOB_ID\"\n"
          "mpirun --mca ras ^slurm --mca plm rsh --mca plm_rsh_agent \"$PWD/srun-agent.sh\" \\\n"
          "  --mca odls_base_sigkill_timeout " +
          std::to_string(static_cast<int>(std::ceil(w_.drain_s)) + 2) +
          " --hostfile \"hosts.$SLURM_JOB_ID\" \\\n"
          "  -n " +
          std::to_string(w_.hosts.size()) + " --map-by node --bind-to none \\\n  " + shell_command(command) +
          " &\n";
    } else {
      out["server.sh"] = kept_running("The server", shell_command(command));
      batch += "srun --ntasks=1 ./server.sh &\n";
    }
    const std::string signal = w_.hosts.size() > 1 ? "TERM" : "USR1";
    batch += "server=$!\nagain=\ntrap 'kill -" + signal + " \"$server\"' TERM INT\ntrap 'again=1; kill -" +
             signal +
             " \"$server\"' USR1\n"
             "while kill -0 \"$server\" 2>/dev/null; do wait \"$server\"; done\n" +
             std::string(w_.hosts.size() > 1 ? "rm -f \"hosts.$SLURM_JOB_ID\"\n" : "") +
             "if [ -n \"$again\" ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\n";
    out["plan.sbatch"] = batch;
    add_secrets(out);
    return out;
  }

 private:
  std::string suffix(const WorkerGroup& g) const { return g.name.substr(w_.name.size() + 1); }
  std::string worker_script(const WorkerGroup& g) const { return "worker-" + suffix(g) + ".sh"; }
  Places places() const {
    Places p;
    p.program = s_.program.empty() ? "heddle" : s_.program;
    p.files = ".";
    p.secrets = "secrets";
    p.bind = "0.0.0.0";
    p.bus = s_.bus;
    return p;
  }
  void add_secrets(DeployFiles& out) const {
    if (!secret_files(w_).empty()) out["make-secrets.sh"] = secrets_script(w_, {});
  }

  static std::string line(const std::string& option) { return "#SBATCH " + option + "\n"; }
  std::string header(const std::string& kind) const {
    return "#!/bin/bash\n# " + w_.name + ": submit it in this folder, by `sbatch " + kind +
           ".sbatch`. Before its time limit the job drains and queues again.\n" +
           line("--job-name=" + w_.name) + line("--output=" + w_.name + "-%j.log") +
           line("--open-mode=append") + line("--requeue") +
           line("--signal=B:USR1@" +
                std::to_string(static_cast<int>(std::ceil(w_.drain_s)) + kLimitNotice_s));
  }
  std::string limits(const std::string& partition) const {
    std::string out = line("--time=" + s_.time);
    const auto& p = partition.empty() ? s_.partition : partition;
    if (!p.empty()) out += line("--partition=" + p);
    if (!s_.account.empty()) out += line("--account=" + s_.account);
    return out;
  }

  std::string component(const WorkerGroup& g) const {
    const auto& c = g.settings;
    const auto count = std::to_string(g.workers);
    std::string out = limits(c.partition) + line("--ntasks=" + count);
    // A generic resource is given per node.
    if (!c.gres.empty())
      out += line("--nodes=" + count) + line("--ntasks-per-node=1") +
             line("--gres=" + c.gres + ":" + std::to_string(c.per_worker));
    out += line("--cpus-per-task=" + std::to_string(cpus_of(g)));
    if (!c.memory.empty()) out += line("--mem=" + slurm_memory(c.memory));
    if (!c.constraint.empty()) out += line("--constraint=" + c.constraint);
    std::string hosts;
    for (const auto& h : c.hosts) hosts += (hosts.empty() ? "" : ",") + h;
    if (!hosts.empty()) out += line("--nodelist=" + hosts);
    return out;
  }

  // Kubernetes writes 8Gi, Slurm 8G.
  static std::string slurm_memory(std::string memory) {
    while (!memory.empty() && (memory.back() == 'i' || memory.back() == 'B')) memory.pop_back();
    return memory;
  }

  std::string make_secrets(size_t component_count) const {
    if (secret_files(w_).empty()) return {};
    if (!has_tls(w_)) return "./make-secrets.sh\n";
    std::string groups;
    for (size_t g = 0; g < component_count; ++g) groups += (g == 0 ? "" : ",") + std::to_string(g);
    return "# The certificate is for the hosts of this job, by the authority of all.\n"
           "rm -f secrets/tls.crt\n"
           "./make-secrets.sh $(srun --het-group=" +
           groups + " hostname | sort -u)\n";
  }

  // Keeps a job step of one task running, also when it ends with its node.
  static constexpr const char* kKeep =
      "keep() {  # NUMBER SCRIPT OPTIONS...\n"
      "  export HEDDLE_NUMBER=$1\n"
      "  step=\n"
      "  stopping=\n"
      "  trap '' TERM INT\n"
      "  trap 'stopping=1; [ -z \"$step\" ] || kill -USR1 \"$step\"' USR1\n"
      "  while [ -z \"$stopping\" ]; do\n"
      "    srun --nodes=1 --ntasks=1 --exact \"${@:3}\" \"./$2\" &\n"
      "    step=$!\n"
      "    status=0\n"
      "    while kill -0 \"$step\" 2>/dev/null; do wait \"$step\"; status=$?; done\n"
      "    if [ \"$status\" -eq 2 ]; then return 2; fi  # bad flags or files\n"
      "    if [ -z \"$stopping\" ]; then sleep 1; fi\n"
      "  done\n"
      "}\n";

  std::string step_options(size_t group, int64_t cpus) const {
    return " --het-group=" + std::to_string(group) + " --cpus-per-task=" + std::to_string(cpus);
  }
  static int64_t cpus_of(const WorkerGroup& g) {
    return g.settings.cpus > 0 ? g.settings.cpus : g.is_gpu ? 2 : g.settings.per_worker;
  }

  std::string fleet_batch() const {
    const auto servers = std::to_string(1 + s_.standbys);
    std::string out = header("fleet") + limits("") + line("--ntasks=" + servers);
    if (s_.standbys > 0) out += line("--nodes=" + servers) + line("--ntasks-per-node=1");
    out += line("--cpus-per-task=" + std::to_string(s_.server_cpus));
    if (!s_.server_constraint.empty()) out += line("--constraint=" + s_.server_constraint);
    for (const auto& g : w_.groups) out += line("hetjob") + component(g);
    out += "\nset -u\n" + std::string(kInFolder) + make_secrets(w_.groups.size() + 1) +
           "HEDDLE_SERVER=$(hostname)\n"
           "export HEDDLE_SERVER\n" +
           kKeep + "servers=()\nfor i in $(seq 0 " + std::to_string(s_.standbys) +
           "); do\n"
           "  keep \"$i\" server.sh" +
           step_options(0, s_.server_cpus) +
           " &\n"
           "  servers+=($!)\n"
           "done\n"
           "workers=()\n";
    for (size_t g = 0; g < w_.groups.size(); ++g) {
      const auto& c = w_.groups[g].settings;
      out += "for i in $(seq 0 " + std::to_string(w_.groups[g].workers - 1) + "); do\n  keep \"$i\" " +
             worker_script(w_.groups[g]) + step_options(g + 1, cpus_of(w_.groups[g])) +
             (c.gres.empty() ? "" : " --gres=" + c.gres + ":" + std::to_string(c.per_worker)) +
             " &\n  workers+=($!)\ndone\n";
    }
    return out +
           "again=\n"
           "trap 'kill -USR1 \"${servers[@]}\" 2>/dev/null' TERM INT\n"
           "trap 'again=1; kill -USR1 \"${servers[@]}\" 2>/dev/null' USR1\n"
           "# A signal ends a wait early. The workers serve until the servers have drained.\n"
           "for server in \"${servers[@]}\"; do\n"
           "  while kill -0 \"$server\" 2>/dev/null; do wait \"$server\"; done\n"
           "done\n"
           "kill -USR1 \"${workers[@]}\" 2>/dev/null\n"
           "wait\n"
           "if [ -n \"$again\" ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\n";
  }

  using Hosts = std::vector<const PlanHost*>;
  std::vector<Hosts> hosts_by_class() const {
    std::vector<Hosts> out;
    for (const auto& h : w_.hosts) {
      const auto found = std::find_if(
          out.begin(), out.end(), [&h](const Hosts& of) { return of.front()->host_class == h.host_class; });
      if (found == out.end())
        out.push_back({&h});
      else
        found->push_back(&h);
    }
    return out;
  }

  std::string components(const std::vector<Hosts>& ordered) const {
    std::string out;
    for (const auto& hosts : ordered) {
      const auto count = std::to_string(hosts.size());
      out += (out.empty() ? "" : line("hetjob")) + limits("") + line("--nodes=" + count) +
             line("--ntasks=" + count) + line("--ntasks-per-node=1") +
             line("--cpus-per-task=" + std::to_string(s_.server_cpus));
      if (hosts.front()->gpus > 0) out += line("--gres=gpu:" + std::to_string(hosts.front()->gpus));
    }
    return out;
  }

  static std::string agent() {
    return "#!/bin/bash\n"
           "# mpirun calls it as: HOST COMMAND..., in place of ssh.\n"
           "host=$1\n"
           "shift\n"
           "for g in $(seq 0 $((${SLURM_HET_SIZE:-1} - 1))); do\n"
           "  list=SLURM_JOB_NODELIST_HET_GROUP_$g\n"
           "  group=(--het-group=\"$g\")\n"
           "  if [ \"${SLURM_HET_SIZE:-1}\" -eq 1 ]; then group=(); fi\n"
           "  if scontrol show hostnames \"${!list:-$SLURM_JOB_NODELIST}\" | grep -qxF \"$host\"; then\n"
           "    exec srun --overlap --mpi=none \"${group[@]}\" --nodelist=\"$host\" -N1 -n1 /bin/sh -c "
           "\"$*\"\n"
           "  fi\n"
           "done\n"
           "echo \"srun-agent: $host is not a host of this job\" >&2\n"
           "exit 1\n";
  }

  const Workloads& w_;
  const DeploySettings& s_;
};

}  // namespace

Result<DeployFiles> slurm_files(const Workloads& workloads) {
  if (workloads.settings.bus == "nats")
    return unsupported(
        "on Slurm no NATS server is started; name yours as bus: nats://HOST:PORT, or leave bus out");
  const Slurm slurm(workloads);
  return workloads.is_fleet ? slurm.fleet_files() : slurm.plan_files();
}

}  // namespace heddle
