// The flags of `heddle serve FLEET` for a server that another one can replace.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "heddle/command/command.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/succession.h"

namespace heddle::cli {

struct StandbyFlags {
  std::string state, name;

  void declare(Command& command);
  bool any() const { return !state.empty() || !name.empty(); }
  // Null without --state. `lost` is raised when another server has taken over.
  // `bucket`: the fleet's on the bus, beside which that of the state is.
  Result<std::unique_ptr<Succession>> open(const std::string& bucket, double lease_s,
                                           const CancelToken& cancel, const CancelToken& lost) const;
};

// What a standby answers: it is alive, and not ready.
void answer_as_standby(const Succession& succession, const HttpHead& head, const HttpReply& reply);

struct FleetPaths {
  std::string fleet, plan, state;  // plan "": it is made here; state: --state
};
// What another server left, or a plan that is made or read here.
struct FirstPlan {
  std::string saved;  // for FleetControl::resume(); "": `plan` is the first one
  FleetPlan plan;
  std::function<Status(const std::string& state)> save;  // for FleetControlOptions
};
// `succession` may be null: then nothing is kept.
Result<FirstPlan> first_plan(const FleetPaths& paths, const Fleet& fleet, Succession* succession,
                             const Invocation& invocation);

// Waits until this server leads, and says so where it has to wait.
Status wait_to_lead(Succession& succession, const CancelToken& cancel);

}  // namespace heddle::cli
