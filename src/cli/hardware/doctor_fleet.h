// heddle doctor URL: what is wrong in a running fleet.
#pragma once

#include <string>
#include <vector>

#include "heddle/command/command.h"

namespace heddle::cli {

struct FleetDoctorFlags {
  std::string url, token_file, ca_file;
  std::vector<std::string> standbys;
  double attainment = -1, window_s = -1;  // below 0: not given

  void declare(Command& command);
  // The first flag that was given and needs the URL; null: none.
  const char* first() const;
};

Result<int> run_fleet_doctor(const FleetDoctorFlags& flags, const Invocation& invocation);

}  // namespace heddle::cli
