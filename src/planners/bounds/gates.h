// Gates: resources that all data must hold on its way out of, or into, some place of the cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "core/flat_problem.h"
#include "heddle/plan/relaxation.h"

namespace heddle {

// A tensor that is made on a device `inside` and read on one that is not (and to which it does not pass
// freely) leaves; in the other direction it enters. Such a tensor occupies the gate, and all that the gate
// serves takes at most one makespan (or period). docs/bounds.md, section 11.
struct Gate {
  std::vector<uint8_t> inside;             // per device
  std::vector<uint8_t> free_out, free_in;  // per device: inside, or reached from there (reaching it) freely
  bool out = false, in = false;            // which directions the gate serves
  TransferRate least;                      // what one tensor occupies it for, at least
  std::vector<double> load_us_per_byte;    // per device, cold: parameters that are loaded for it

  double us(int64_t bytes) const { return least.us(static_cast<double>(bytes)); }
};

// The gates of each node's links and buses, and of each device's copy engine, as far as the problem's
// execution model makes them exclusive. `flat` must cover all usable devices.
std::vector<Gate> find_gates(const FlatProblem& flat, const Relaxation& relaxation);

// Per op: its parameters' bytes, each over the number of ops that read it.
std::vector<double> shared_param_bytes(const FlatProblem& flat);

}  // namespace heddle
