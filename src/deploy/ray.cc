// Ray: the processes as data, for the Python module heddle.ray, which makes actors of them.
#include "commands.h"
#include "heddle/base/json.h"
#include "renderers.h"

namespace heddle {
namespace {

// For Python's string.Template.
Json template_words(const std::vector<std::string>& words) {
  Json out = Json::array();
  for (const auto& w : words)
    out.push_back(expanded_word(
        w, [](const std::string& text) { return replaced_all(text, "$", "$$"); },
        [](const std::string& name) { return "${" + name + "}"; }));
  return out;
}

}  // namespace

Result<DeployFiles> ray_files(const Workloads& workloads) {
  const auto& s = workloads.settings;
  if (workloads.hosts.size() > 1) return unsupported(over_hosts(workloads, "Ray"));
  if (!workloads.is_fleet)
    return unsupported(
        "Ray runs the workers of a fleet; serve a plan of one model by --on systemd, "
        "kubernetes or slurm");
  if (s.tls.value_or(false))
    return unsupported(
        "tls: no certificate can name hosts that Ray has not chosen yet; leave tls out, tokens still "
        "authenticate workers and clients");
  if (s.bus == "nats")
    return unsupported(
        "on Ray no NATS server is started; name yours as bus: nats://HOST:PORT, or leave bus out");
  Workloads w = workloads;
  w.settings.tls = false;
  Places p;
  p.program = variable("program");
  p.files = variable("files");
  p.secrets = variable("secrets");
  p.bind = "0.0.0.0";
  p.server = variable("server");
  p.bus = s.bus;
  p.worker_name = variable("name");
  p.advertise = variable("host");
  Json workers = Json::array();
  for (const auto& g : w.groups)
    workers.push_back({{"name", g.name},
                       {"device_class", g.device_class},
                       {"workers", g.workers},
                       {"devices", g.settings.per_worker},
                       {"gpus", g.is_gpu && g.settings.resource != "none" ? g.settings.per_worker : 0},
                       {"cpus", g.settings.cpus > 0 ? g.settings.cpus
                                : g.is_gpu          ? 1
                                                    : g.settings.per_worker},
                       {"command", template_words(worker_command(w, g, p))}});
  Json files = Json::array();
  for (const auto& [name, text] : w.files) files.push_back(name);
  const Json document = {{"format", "heddle-ray"},
                         {"version", 1},
                         {"name", w.name},
                         {"program", s.program.empty() ? "heddle" : s.program},
                         {"drain_s", w.drain_s},
                         {"wait_s", s.wait_s},
                         {"port", s.port},
                         {"files", std::move(files)},
                         {"secrets", secret_files(w)},
                         {"server",
                          {{"cpus", s.server_cpus},
                           {"servers", 1 + s.standbys},
                           {"resource", s.server_constraint.empty() ? "" : "heddle_" + s.server_constraint},
                           {"command", template_words(server_command(w, p))}}},
                         {"workers", std::move(workers)}};
  DeployFiles out = w.files;
  out["deployment.json"] = json_text(document, 1) + "\n";
  out["start.py"] =
      "\"\"\"Starts the fleet on the Ray cluster of RAY_ADDRESS and keeps it until Ctrl-C or "
      "SIGTERM.\"\"\"\n\n"
      "import pathlib\n\n"
      "import heddle.ray\n\n"
      "heddle.ray.run(pathlib.Path(__file__).parent)\n";
  return out;
}

}  // namespace heddle
