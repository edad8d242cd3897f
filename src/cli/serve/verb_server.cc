// heddle server status, add, remove, drain, undrain and switch: a fleet that is being served.
#include <cmath>
#include <memory>
#include <optional>

#include "heddle/base/json.h"
#include "heddle/base/json_fields.h"
#include "heddle/serve/server_target.h"
#include "heddle/serve/status_tables.h"
#include "server_watch.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr double kPatience_s = 120;

struct LiveFlags {
  std::string url, what, token_file, ca_file;
  std::optional<double> watch_s;
};

Result<Json> ask(const LiveFlags& o, const std::string& method, const std::string& path,
                 const std::string& body) {
  HEDDLE_ASSIGN_OR_RETURN(const auto target, server_target(o.url, o.token_file, o.ca_file));
  auto answer = ask_json(target, method, path, body, kPatience_s);
  if (!answer.ok() && answer.error().code() == Code::kNotFound &&
      std::string_view(path).starts_with("/v2/fleet/"))
    return not_found(
        o.url +
        ": this server serves models or a plan, not a fleet; only a fleet's devices and plan can be "
        "changed while it serves");
  return answer;
}

Result<int> run_status(const LiveFlags& o, const Invocation& invocation) {
  if (o.watch_s) {
    HEDDLE_ASSIGN_OR_RETURN(const auto target, server_target(o.url, o.token_file, o.ca_file));
    return watch_status(target, *o.watch_s, invocation);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto status, ask(o, "GET", "/v2/status", ""));
  show_result(invocation, status, invocation.json ? "" : status_text(status));
  return kExitDone;
}

int print_change(const Json& answer, const Invocation& invocation) {
  if (invocation.json) {
    show_json(invocation, answer);
  } else {
    print("the new plan is in use, value {:.4g}", number_in(answer, "value"));
    if (answer.contains("moved_devices"))
      print("; {:.4g} devices have loaded other weights", number_in(answer, "moved_devices"));
    const auto drained = devices_text(object_in(answer, "drained"));
    print("{}\n", drained.empty() ? "" : ("; drained: " + drained));
  }
  return kExitDone;
}

// CLASS=N
Result<int> run_counts(const LiveFlags& o, const char* path, int sign, const Invocation& invocation) {
  const auto change = assignment("CHANGE", o.what);
  if (!change.ok() || change->first.empty() || !(change->second >= 1 && change->second <= 1e7) ||
      change->second != std::floor(change->second))
    return invalid_input(o.what + ": expected CLASS=N with N from 1, such as L4=2");
  const Json body = {{"change", {{change->first, sign * static_cast<int64_t>(change->second)}}}};
  HEDDLE_ASSIGN_OR_RETURN(const auto answer, ask(o, "POST", path, body.dump()));
  return print_change(answer, invocation);
}

Result<int> run_switch(const LiveFlags& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, read_json_file(o.what));
  HEDDLE_ASSIGN_OR_RETURN(const auto answer, ask(o, "POST", "/v2/fleet/plan", plan.dump()));
  return print_change(answer, invocation);
}

std::shared_ptr<LiveFlags> declare(Command& command, const char* name, const char* help) {
  auto o = std::make_shared<LiveFlags>();
  command.positional("URL", o->url, "the server, http://HOST:PORT");
  if (name != nullptr) command.positional(name, o->what, help);
  command.option("--token-file", o->token_file, "the server's bearer token");
  command.option("--ca", o->ca_file, "https: the certificates that are trusted (PEM; default: the system's)");
  return o;
}

RunFn setup_status(Command& command) {
  const auto o = declare(command, nullptr, nullptr);
  command.seconds_if_given(
      "--watch", o->watch_s, "1s",
      "show it again and again, with rates of the time between, until Ctrl-C (default each second)", .1,
      3600);
  return [o](const Invocation& invocation) { return run_status(*o, invocation); };
}

// CLASS=N sent to `path`, with `sign` before N.
RunFn setup_counts(Command& command, const char* help, const char* path, int sign) {
  const auto o = declare(command, "CHANGE", help);
  return [o, path, sign](const Invocation& invocation) { return run_counts(*o, path, sign, invocation); };
}

RunFn setup_add(Command& command) {
  return setup_counts(command, "CLASS=N: so many more devices of the class", "/v2/fleet/counts", 1);
}

RunFn setup_remove(Command& command) {
  return setup_counts(command, "CLASS=N: so many fewer devices of the class", "/v2/fleet/counts", -1);
}

RunFn setup_drain(Command& command) {
  return setup_counts(command, "CLASS=N: so many more devices of the class get nothing to do",
                      "/v2/fleet/drain", 1);
}

RunFn setup_undrain(Command& command) {
  return setup_counts(command, "CLASS=N: so many drained devices of the class are used again",
                      "/v2/fleet/drain", -1);
}

RunFn setup_switch(Command& command) {
  const auto o = declare(command, "PLAN", "a plan file (JSON) of the fleet that is served");
  return [o](const Invocation& invocation) { return run_switch(*o, invocation); };
}

constexpr Verb kServerParts[] = {
    {"status", "show a served fleet's models, pools and their use", setup_status},
    {"add", "add devices to a served fleet", setup_add},
    {"remove", "remove devices from a served fleet after draining them", setup_remove},
    {"drain", "stop using devices of a served fleet without removing them", setup_drain},
    {"undrain", "use drained devices of a served fleet again", setup_undrain},
    {"switch", "replace the plan of a served fleet: drain, then switch", setup_switch},
};

}  // namespace

RunFn setup_server(Command& command) { return command.subverbs(kServerParts); }

}  // namespace heddle::cli
