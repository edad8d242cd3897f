// systemd: units for bare hosts, a folder for each host.
#include <algorithm>
#include <cmath>
#include <set>

#include "commands.h"
#include "heddle/base/spelling.h"
#include "renderers.h"

namespace heddle {
namespace {

// A word of ExecStart=: % begins a specifier, $ a variable, and words with blanks stand in quotes.
std::string unit_word(std::string_view word) {
  const auto text = expanded_word(
      word,
      [](const std::string& literal) {
        std::string out = replaced_all(literal, "%", "%%");
        out = replaced_all(out, "$", "$$");
        out = replaced_all(out, "\\", "\\\\");
        return replaced_all(out, "\"", "\\\"");
      },
      [](const std::string& name) { return "${" + name + "}"; });
  return text.find_first_of(" \t'\"\\;") == std::string::npos ? text : "\"" + text + "\"";
}

class Systemd {
 public:
  explicit Systemd(const Workloads& w) : w_(w), s_(w.settings) {
    server_host_ = !s_.host.empty() ? s_.host : "localhost";
  }

  Result<DeployFiles> files() {
    DeployFiles out;
    const auto server =
        unit("heddle " + w_.name + ": the server", server_command(w_, places()), secret_files(w_));
    out[unit_path(server_host_, "server")] = server;
    for (const auto& [name, text] : w_.files) out[server_host_ + "/files/" + name] = text;
    hosts_.insert(server_host_);
    for (const auto& g : w_.groups) HEDDLE_RETURN_IF_ERROR(add_workers(g, out));
    for (const auto& host : hosts_) out[host + "/install.sh"] = install_script(host);
    if (!secret_files(w_).empty())
      out["make-secrets.sh"] = secrets_script(w_, {hosts_.begin(), hosts_.end()});
    return out;
  }

 private:
  std::string base() const { return "heddle-" + w_.name; }
  std::string unit_path(const std::string& host, const std::string& process) const {
    return host + "/" + base() + "-" + process + ".service";
  }
  std::string folder() const { return "/etc/heddle/" + w_.name; }
  Places places() const {
    Places p;
    p.program = s_.program.empty() ? "/usr/bin/heddle" : s_.program;
    p.files = folder() + "/files";
    p.secrets = variable("CREDENTIALS_DIRECTORY");
    const bool alone = std::all_of(w_.groups.begin(), w_.groups.end(),
                                   [](const auto& g) { return g.settings.hosts.empty(); });
    p.bind = alone && s_.host.empty() ? "127.0.0.1" : "0.0.0.0";
    p.server = alone && s_.host.empty() ? "127.0.0.1" : server_host_;
    p.bus = s_.bus;
    return p;
  }

  std::string unit(const std::string& description, const std::vector<std::string>& command,
                   const std::vector<std::string>& secrets) const {
    std::string out =
        "[Unit]\nDescription=" + replaced_all(description, "%", "%%") +
        "\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\nType=exec\nExecStart=" +
        command_lines(command, unit_word) + "\n";
    for (const auto& name : secrets)
      out += "LoadCredential=" + name + ":" + folder() + "/secrets/" + name + "\n";
    return out +
           "Restart=always\n"
           "RestartSec=1\n"
           "# It drains on SIGTERM.\n"
           "TimeoutStopSec=" +
           std::to_string(static_cast<int>(std::ceil(w_.drain_s)) + 5) +
           "\n"
           "DynamicUser=yes\n"
           "StateDirectory=" +
           base() +
           "\n"
           "Environment=HOME=/var/lib/" +
           base() +
           "\n"
           "ProtectSystem=strict\n"
           "ProtectHome=read-only\n"
           "NoNewPrivileges=yes\n\n"
           "[Install]\n"
           "WantedBy=multi-user.target\n";
  }

  Status add_workers(const WorkerGroup& g, DeployFiles& out) {
    const auto hosts = g.settings.hosts.empty() ? std::vector<std::string>{server_host_} : g.settings.hosts;
    const auto host_count = static_cast<int64_t>(hosts.size());
    const auto suffix = g.name.substr(w_.name.size() + 1);
    const bool named_by_settings = !w_.settings.classes.empty() &&
                                   w_.settings.classes.contains(g.device_class) &&
                                   !w_.settings.classes.at(g.device_class).names.empty();
    if (named_by_settings && g.workers > host_count)
      return invalid_input("the settings of the class " + quote_text(g.device_class) +
                           " name the devices of one worker, and " + hosts.front() +
                           " has several; raise per_worker and names to all of a host's devices, or list "
                           "more hosts");
    for (int64_t i = 0; i < g.workers; ++i) {
      const auto& host = hosts[static_cast<size_t>(i % host_count)];
      hosts_.insert(host);
      WorkerGroup one = g;
      // A worker on a bare host sees all GPUs of it, so each takes its own.
      if (!named_by_settings && !one.settings.names.empty()) {
        const auto& first = gpus_of_.emplace(host, g.device_class).first->second;
        if (first != g.device_class)
          return invalid_input(
              host + " has GPUs of the classes " + quote_text(first) + " and " + quote_text(g.device_class) +
              ", and which number each has is not known; give the names of its devices in the "
              "settings of both classes");
        for (int64_t d = 0; d < g.settings.per_worker; ++d)
          one.settings.names[static_cast<size_t>(d)] =
              "gpu" + std::to_string(i / host_count * g.settings.per_worker + d);
      }
      Places p = places();
      p.worker_name = suffix + "-" + std::to_string(i);
      p.advertise = p.bind == "127.0.0.1" ? p.bind : host;
      p.worker_port = std::to_string(s_.worker_listen_port + next_port_[host]++);
      out[unit_path(host, p.worker_name)] = unit("heddle " + w_.name + ": a worker of " + g.device_class,
                                                 worker_command(w_, one, p), worker_secrets());
    }
    return {};
  }

  std::vector<std::string> worker_secrets() const {
    auto names = secret_files(w_);
    std::erase(names, kClientToken);
    return names;
  }

  std::string install_script(const std::string& host) const {
    std::string out = "#!/bin/sh\n# Installs or updates the units of " + host +
                      " there, as root; units of an earlier plan that are not here are stopped.\n"
                      "set -eu\ncd \"$(dirname \"$0\")\"\n"
                      "mkdir -p " +
                      folder() + "\n";
    if (host == server_host_) out += "rm -rf " + folder() + "/files && cp -r files " + folder() + "/files\n";
    if (!secret_files(w_).empty())
      out += "mkdir -m 700 -p " + folder() + "/secrets\ncp ../secrets/* " + folder() + "/secrets/\n";
    // By a list: the names of another deployment's units may begin with this one's.
    return out + "installed=" + folder() +
           "/units\n"
           "touch \"$installed\"\n"
           "while read -r name; do\n"
           "  if [ ! -e \"$name\" ]; then systemctl disable --now \"$name\" && rm "
           "\"/etc/systemd/system/$name\"; fi\n"
           "done <\"$installed\"\n"
           "ls ./*.service | sed 's|^./||' >\"$installed\"\n"
           "for unit in *.service; do\n"
           "  if cmp -s \"$unit\" \"/etc/systemd/system/$unit\"; then continue; fi\n"
           "  cp \"$unit\" /etc/systemd/system/\n"
           "done\n"
           "systemctl daemon-reload\n"
           "systemctl enable *.service\n"
           "systemctl restart *.service\n";
  }

  const Workloads& w_;
  const DeploySettings& s_;
  std::string server_host_;
  std::set<std::string> hosts_;
  std::map<std::string, int64_t> next_port_;    // by host, from worker_listen_port
  std::map<std::string, std::string> gpus_of_;  // by host: the class of its GPUs that are numbered here
};

}  // namespace

Result<DeployFiles> systemd_files(const Workloads& workloads) {
  if (workloads.hosts.size() > 1) return unsupported(over_hosts(workloads, "systemd"));
  if (workloads.settings.standbys > 0)
    return unsupported(
        "units are for one server's host; copy its folder to a second host, and add --state with your "
        "bus to both units' commands, or leave standbys out");
  if (workloads.settings.bus == "nats")
    return unsupported("units start no NATS server; name yours as bus: nats://HOST:PORT, or leave bus out");
  return Systemd(workloads).files();
}

}  // namespace heddle
