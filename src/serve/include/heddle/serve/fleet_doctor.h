// Faults of a fleet that is being served, by what its server measures and by its standbys' answers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/json.h"
#include "heddle/base/status.h"
#include "heddle/serve/load.h"

namespace heddle {

struct FleetFinding {
  std::string
      check;  // "server", "clocks", "links", "cores", "versions", "models", "standby", "pools", "attainment"
  std::string where, what, todo;  // for people
};

struct FleetHealth {
  std::vector<FleetFinding> findings;
  // What was looked at, one entry for each check that could be made: its name and what is known, for people.
  std::vector<std::pair<std::string, std::string>> checked;
};

// A server that belongs to a fleet, by the name that a user gave.
struct NamedTarget {
  std::string name;
  LoadTarget target;
};

struct FleetDoctorOptions {
  NamedTarget server;
  std::vector<NamedTarget> standbys;
  double attainment = .99;  // the least share of each model's requests in time
  double window_s = 2;      // that is looked at
  CancelToken cancel;
};

// Takes about the window. A server that does not answer or does not serve is a finding. Errors: kCancelled; an answer
// that refuses the question, such as for want of a token.
Result<FleetHealth> examine_fleet(const FleetDoctorOptions& options);

// What servers have answered.
struct FleetAnswers {
  Json before, after;  // v2/status, `seconds` apart
  double seconds = 0;
  Json fleet;  // v2/fleet; null: the server has none
  Json index;  // v2/repository/index
  struct Standby {
    std::string name;
    std::string unreachable;  // why; empty: it answers
    bool leads = false;
    Json answer;  // of one that does not lead: {"leader", "version"}
  };
  std::vector<Standby> standbys;
};
FleetHealth diagnose(const FleetAnswers& answers, double attainment);

Json to_json(const FleetHealth& health);
// A table of the checks, then each finding and what to do.
std::string health_text(const FleetHealth& health);

}  // namespace heddle
