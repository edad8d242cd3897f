// heddle server status, add, remove, drain, undrain and switch: a fleet that is being served.
#include <algorithm>
#include <cmath>
#include <memory>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"
#include "server_target.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr double kPatience_s = 120;

struct LiveFlags {
  std::string url, what, token_file, ca_file;
};

Result<Json> ask(const LiveFlags& o, const std::string& method, const std::string& path,
                 const std::string& body) {
  HEDDLE_ASSIGN_OR_RETURN(const auto target, server_target(o.url, o.token_file, o.ca_file));
  return ask_json(target, method, path, body, kPatience_s);
}

// What a server that is not ours might leave out is shown as nothing.
double number(const Json& of, const char* name) {
  return of.is_object() && of.contains(name) && of[name].is_number() ? of[name].get<double>() : 0;
}
std::string text(const Json& of, const char* name) {
  return of.is_object() && of.contains(name) && of[name].is_string() ? of[name].get<std::string>() : "";
}
std::string whole(const Json& of, const char* name) {
  return std::to_string(static_cast<int64_t>(std::min(number(of, name), 9e15)));
}
Json list(const Json& of, const char* name) {
  return of.is_object() && of.contains(name) && of[name].is_array() ? of[name] : Json::array();
}

std::string devices_text(const Json& of) {
  std::string out;
  if (of.is_object())
    for (const auto& [name, count] : of.items())
      out += (out.empty() ? "" : " ") + name + "=" + (count.is_number() ? count.dump() : "");
  return out;
}

std::string workers_table(const Json& status) {
  using Align = TextTable::Align;
  TextTable table({{"worker", Align::kLeft, 30},
                   {"devices", Align::kLeft, 30},
                   {"virtual", Align::kRight},
                   {"state", Align::kLeft, 50},
                   {"runs", Align::kRight},
                   {"losses", Align::kRight}});
  for (const auto& w : list(status, "workers")) {
    const auto reason = text(w, "reason");
    table.add_row({text(w, "name"),
                   devices_text(w.is_object() && w.contains("devices") ? w["devices"] : Json()),
                   whole(w, "virtual_devices"), text(w, "state") + (reason.empty() ? "" : ": " + reason),
                   whole(w, "runs"), whole(w, "losses")});
  }
  const Json faults = status.is_object() && status.contains("faults") ? status["faults"] : Json();
  return "\n" + table.to_string() + "since the plan is in use: " + whole(faults, "devices_lost") +
         " virtual devices lost, " + whole(faults, "given_up") + " steps given up, " +
         whole(faults, "rerun_rows") + " rows queued again, " + whole(faults, "late_answers") +
         " late answers dropped\n";
}

// What measuring has corrected, and the last changes of the plan.
std::string changes_text(const Json& status) {
  constexpr size_t kShown = 10;
  std::string out;
  for (const auto& c : list(status, "corrections")) {
    double sum = 0;
    const Json factors = list(c, "factors");
    for (const auto& f : factors) sum += f.is_number() ? f.get<double>() : 0;
    const double mean = factors.empty() ? 1 : sum / static_cast<double>(factors.size());
    out += "measured times in the plan: " + text(c, "model") + " on " + text(c, "class") +
           (number(c, "share") > 1 ? "/" + whole(c, "share") : "") + fmt::format(" x {:.3g}\n", mean);
  }
  const Json changes = list(status, "changes");
  for (size_t i = changes.size() - std::min(changes.size(), kShown); i < changes.size(); ++i)
    out += text(changes[i], "at") + " " + text(changes[i], "what") + ": " + text(changes[i], "text") + "\n";
  return out.empty() ? out : "\n" + out;
}

// Requests and padding of models of varying shapes.
std::string buckets_table(const Json& status) {
  TextTable table({{"model", TextTable::Align::kLeft, 36},
                   {"bucket", TextTable::Align::kLeft, 40},
                   {"planned", kRight},
                   {"alone", kRight},
                   {"answered", kRight},
                   {"padding", kRight}});
  bool any = false;
  for (const auto& m : list(status, "models")) {
    bool first = true;
    for (const auto& b : list(m, "buckets")) {
      table.add_row({first ? text(m, "name") : "", text(b, "name"), percent(number(b, "share")),
                     format_us(number(b, "us")), whole(b, "requests"),
                     first ? percent(number(m, "padding")) : ""});
      first = false;
      any = true;
    }
  }
  return any ? "\n" + table.to_string() : "";
}

Result<int> run_status(const LiveFlags& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto status, ask(o, "GET", "/v2/status", ""));
  if (invocation.json) {
    show_json(invocation, status);
    return kExitDone;
  }
  using Align = TextTable::Align;
  TextTable models({{"model", Align::kLeft, 36},
                    {"SLO", Align::kRight},
                    {"answered", Align::kRight},
                    {"in time", Align::kRight},
                    {"dropped", Align::kRight},
                    {"waiting", Align::kRight},
                    {"p99", Align::kRight}});
  for (const auto& m : list(status, "models")) {
    const Json requests = m.is_object() && m.contains("requests") ? m["requests"] : Json();
    const Json latency = m.is_object() && m.contains("latency") ? m["latency"] : Json();
    double all = 0;
    for (const char* outcome : {"in_time", "late", "dropped", "failed", "withdrawn"})
      all += number(requests, outcome);
    models.add_row(
        {text(m, "name"), format_us(number(m, "slo_us")),
         std::to_string(static_cast<int64_t>(number(requests, "in_time") + number(requests, "late"))),
         all > 0 ? percent(number(requests, "in_time") / all) : "", whole(requests, "dropped"),
         whole(m, "queued"), format_us(number(latency, "p99_us"))});
  }
  TextTable pools({{"model", Align::kLeft, 36},
                   {"pipe", Align::kRight},
                   {"part", Align::kRight},
                   {"class"},
                   {"devices", Align::kRight},
                   {"busy", Align::kRight},
                   {"use", Align::kRight},
                   {"runs", Align::kRight},
                   {"off plan", Align::kRight}});
  for (const auto& p : list(status, "pools")) {
    const double predicted = number(p, "predicted_s");
    pools.add_row({text(p, "model"), whole(p, "pipeline"), whole(p, "partition"), text(p, "class"),
                   whole(p, "devices"), whole(p, "running"), percent(number(p, "use")), whole(p, "runs"),
                   predicted > 0 ? percent(number(p, "busy_s") / predicted - 1) : ""});
  }
  print("{}: {}, plans so far: {}\n{}\n{}", text(status, "fleet"), text(status, "state"),
        whole(status, "plans"), models.to_string(), pools.to_string());
  print("{}", buckets_table(status));
  const auto drained =
      status.is_object() && status.contains("drained") ? devices_text(status["drained"]) : "";
  if (!drained.empty()) print("drained: {}\n", drained);
  if (!list(status, "workers").empty()) print("{}", workers_table(status));
  print("{}", changes_text(status));
  return kExitDone;
}

int print_change(const Json& answer, const Invocation& invocation) {
  if (invocation.json) {
    show_json(invocation, answer);
  } else {
    print("the new plan is in use, value {:.4g}", number(answer, "value"));
    if (answer.contains("moved_devices"))
      print("; {:.4g} devices have loaded other weights", number(answer, "moved_devices"));
    const auto drained = answer.contains("drained") ? devices_text(answer["drained"]) : "";
    print("{}\n", drained.empty() ? "" : ("; drained: " + drained));
  }
  return kExitDone;
}

// CLASS=N
Result<int> run_counts(const LiveFlags& o, const char* path, int sign, const Invocation& invocation) {
  const auto change = assignment("CHANGE", o.what);
  if (!change.ok() || change->first.empty() || !(change->second >= 1 && change->second <= 1e7) ||
      change->second != std::floor(change->second))
    return Error(Code::kInvalidInput, o.what + ": expected CLASS=N with N from 1, such as L4=2");
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
