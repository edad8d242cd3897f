#include "standby_flags.h"

#include <unistd.h>

#include "heddle/base/content_hash.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/version.h"
#include "heddle/fleet/fleet_planner.h"
#include "reachable.h"

namespace heddle::cli {

void StandbyFlags::declare(Command& command) {
  command.option(
      "--state", state,
      "fleet: keep the plan in use in this folder, or on nats://HOST:PORT, for a standby: of several "
      "servers with the same --state one serves, and the next one takes over when it ends");
  command.option("--name", name, "with --state: this server's name for people (default: host and process)");
}

Result<std::unique_ptr<Succession>> StandbyFlags::open(const std::string& bucket, double lease_s,
                                                       const CancelToken& cancel,
                                                       const CancelToken& lost) const {
  if (state.empty() && !name.empty())
    return invalid_input("--name belongs to --state: it names one of several servers");
  if (state.empty()) return std::unique_ptr<Succession>();
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  SuccessionOptions options;
  options.where = state;
  options.bucket = bucket + "-state";
  options.name = name.empty() ? std::string(host) + "-" + std::to_string(::getpid()) : name;
  options.lease_s = lease_s;
  options.lost = lost;
  auto succession = when_reachable(state, cancel, [&options] { return Succession::open(options); });
  if (!succession.ok()) return std::move(succession).error().with_context("--state");
  return succession;
}

void answer_as_standby(const Succession& succession, const HttpHead& head, const HttpReply& reply) {
  if (head.path == "/v2/health/live") return reply.send(HttpResponse{});
  const std::string leader = succession.leader();
  reply.send(json_response({{"error", leader.empty() ? "this server is about to lead; try again soon"
                                                     : "this server is a standby; '" + leader + "' leads"},
                            {"leader", leader},
                            {"version", kVersion}},
                           503));
}

Result<FirstPlan> first_plan(const FleetPaths& paths, const Fleet& fleet, Succession* succession,
                             const Invocation& invocation) {
  FirstPlan first;
  if (succession != nullptr) {
    const auto hash = [paths]() -> Result<uint64_t> {
      HEDDLE_ASSIGN_OR_RETURN(std::string text, read_file(paths.fleet));
      if (!paths.plan.empty()) {
        HEDDLE_ASSIGN_OR_RETURN(const std::string plan, read_file(paths.plan));
        text += plan;
      }
      return content_hash(text);
    };
    first.save = [succession, hash](const std::string& state) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const uint64_t of_file, hash());
      return succession->save(of_file, state);
    };
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t of_file, hash());
    HEDDLE_ASSIGN_OR_RETURN(first.saved, when_reachable(paths.state, invocation.cancel,
                                                        [&] { return succession->saved_state(of_file); }));
    if (!first.saved.empty()) return first;
  }
  if (paths.plan.empty()) {
    FleetPlanOptions planning;
    planning.deadline = Deadline::never(invocation.cancel);
    planning.progress = invocation.progress;
    HEDDLE_ASSIGN_OR_RETURN(first.plan, plan_fleet(fleet, "auto", planning));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(first.plan, read_fleet_plan(paths.plan, fleet));
  }
  return first;
}

Status wait_to_lead(Succession& succession, const CancelToken& cancel) {
  const auto waits = [](const std::string& leader) {
    log_line(LogLevel::kInfo, "standby: the server " + leader + " leads");
  };
  HEDDLE_RETURN_IF_ERROR(succession.wait_to_lead(cancel, waits));
  log_line(LogLevel::kInfo, "this server leads, in term " + std::to_string(succession.term()));
  return {};
}

}  // namespace heddle::cli
