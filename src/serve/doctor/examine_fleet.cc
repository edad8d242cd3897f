// Asks a fleet's servers for all that diagnose() needs.
#include <algorithm>
#include <utility>

#include "heddle/base/stopwatch.h"
#include "heddle/base/sync.h"
#include "heddle/serve/fleet_doctor.h"

namespace heddle {
namespace {

constexpr double kAnswer_s = 10;
constexpr int64_t kLook_ns = 20'000'000;

Result<Json> asked(const LoadTarget& target, const char* method, const char* path) {
  return ask_json(target, method, path, "", kAnswer_s);
}

FleetAnswers::Standby standby_of(const NamedTarget& which) {
  FleetAnswers::Standby out;
  out.name = which.name;
  const auto live = ask_http(which.target, "GET", "/v2/health/live", "", kAnswer_s);
  if (!live.ok() || live->status != 200) {
    out.unreachable = live.ok() ? "status " + std::to_string(live->status) : live.error().to_string();
    return out;
  }
  const auto status = ask_http(which.target, "GET", "/v2/status", "", kAnswer_s);
  out.leads = status.ok() && status->status == 200;
  if (!status.ok() || out.leads) return out;
  if (auto json = parse_json(status->body); json.ok()) out.answer = std::move(*json);
  return out;
}

Status wait_for(double seconds, const CancelToken& cancel) {
  const int64_t until = steady_ns() + static_cast<int64_t>(seconds * 1e9);
  while (steady_ns() < until) {
    if (cancel.cancelled()) return cancelled_error("stopped before the fleet was examined");
    sleep_ns(std::min(kLook_ns, until - steady_ns()));
  }
  return {};
}

}  // namespace

Result<FleetHealth> examine_fleet(const FleetDoctorOptions& options) {
  const auto& [name, server] = options.server;
  const auto live = ask_http(server, "GET", "/v2/health/live", "", kAnswer_s);
  FleetHealth bad;
  if (!live.ok()) {
    bad.findings.push_back(
        {"server", name, live.error().message(),
         "start the server, or look at its log why it ended; check the address and the network"});
    return bad;
  }
  const auto ready = ask_http(server, "GET", "/v2/health/ready", "", kAnswer_s);
  if (ready.ok() && ready->status == 503) {
    const auto why = parse_json(ready->body);
    const bool standby =
        why.ok() && why->is_object() && why->contains("error") && (*why)["error"].is_string();
    bad.findings.push_back(
        {"server", name, standby ? (*why)["error"].get<std::string>() : "it serves no plan",
         standby ? "give doctor the address of the server that leads"
                 : "look at its log: it may wait for workers, or its plan cannot be used"});
    return bad;
  }
  FleetAnswers answers;
  HEDDLE_ASSIGN_OR_RETURN(answers.before, asked(server, "GET", "/v2/status"));
  const Stopwatch watch;
  HEDDLE_RETURN_IF_ERROR(wait_for(options.window_s, options.cancel));
  HEDDLE_ASSIGN_OR_RETURN(answers.after, asked(server, "GET", "/v2/status"));
  answers.seconds = watch.seconds();
  if (auto fleet = asked(server, "GET", "/v2/fleet"); fleet.ok()) answers.fleet = std::move(*fleet);
  HEDDLE_ASSIGN_OR_RETURN(answers.index, asked(server, "POST", "/v2/repository/index"));
  for (const auto& standby : options.standbys) answers.standbys.push_back(standby_of(standby));
  return diagnose(answers, options.attainment);
}

Json to_json(const FleetHealth& health) {
  Json findings = Json::array(), checked = Json::array();
  for (const auto& f : health.findings)
    findings.push_back({{"check", f.check}, {"where", f.where}, {"what", f.what}, {"todo", f.todo}});
  for (const auto& [check, known] : health.checked) checked.push_back({{"check", check}, {"known", known}});
  return {{"healthy", health.findings.empty()},
          {"findings", std::move(findings)},
          {"checked", std::move(checked)}};
}

}  // namespace heddle
