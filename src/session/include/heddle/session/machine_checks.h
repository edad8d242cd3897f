// Checks of this machine: solvers, engines, GPUs, the profile store, ports of servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

enum class CheckState : uint8_t { kOk, kAbsent, kFails };

struct MachineCheck {
  std::string name;
  CheckState state = CheckState::kOk;
  std::string detail;
};

// Takes about a second.
std::vector<MachineCheck> check_machine();

}  // namespace heddle
