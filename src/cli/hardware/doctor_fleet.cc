#include "doctor_fleet.h"

#include "heddle/serve/fleet_doctor.h"
#include "heddle/serve/server_target.h"

namespace heddle::cli {
void FleetDoctorFlags::declare(Command& command) {
  command.positional("URL", url, "instead, examine the fleet that this server serves, http://HOST:PORT",
                     false);
  command.group("A running fleet");
  command.list("--standby", standbys, "URL: a standby server that must answer, too (repeatable)");
  command.seconds("--for", window_s, "time that the fleet is observed (default 2s)", .1, 3600);
  command.option("--attainment", attainment, "least share of each model's requests in time (default .99)", 0,
                 1);
  command.option("--token-file", token_file, "the servers' bearer token");
  command.option("--ca", ca_file, "https: the certificates that are trusted (PEM; default: the system's)");
}

const char* FleetDoctorFlags::first() const {
  if (!standbys.empty()) return "--standby";
  if (window_s >= 0) return "--for";
  if (attainment >= 0) return "--attainment";
  if (!token_file.empty()) return "--token-file";
  return ca_file.empty() ? nullptr : "--ca";
}

Result<int> run_fleet_doctor(const FleetDoctorFlags& flags, const Invocation& invocation) {
  FleetDoctorOptions options;
  HEDDLE_ASSIGN_OR_RETURN(const auto server, server_target(flags.url, flags.token_file, flags.ca_file));
  options.server = {flags.url, server};
  for (const auto& url : flags.standbys) {
    HEDDLE_ASSIGN_OR_RETURN(const auto standby, server_target(url, flags.token_file, flags.ca_file));
    options.standbys.push_back({url, standby});
  }
  if (flags.attainment >= 0) options.attainment = flags.attainment;
  if (flags.window_s >= 0) options.window_s = flags.window_s;
  options.cancel = invocation.cancel;
  HEDDLE_ASSIGN_OR_RETURN(auto health, examine_fleet(options));
  show_result(invocation, to_json(health), health_text(health));
  return health.findings.empty() ? kExitDone : kExitNo;
}

}  // namespace heddle::cli
