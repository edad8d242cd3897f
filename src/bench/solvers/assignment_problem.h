// Ops on devices, small enough to try all assignments: as constraint programs of the planners' form, and by trying
// everything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/base/status.h"
#include "heddle/solve/cp.h"

namespace heddle::bench {

struct AssignmentProblem {
  static constexpr int64_t kCannot = -1;  // as a time
  struct Edge {
    size_t from = 0, to = 0;
    int64_t delay = 0;  // ticks, if the ops are on different devices
  };
  size_t ops = 0, devices = 0;
  std::vector<int64_t> ticks;   // [op * devices + device]
  std::vector<Edge> edges;      // from < to
  std::vector<int64_t> memory;  // by op
  std::vector<int64_t> limits;  // of memory, by device
  bool shared = false;          // the first two devices exclude each other, as devices that share cores do

  int64_t at(size_t op, size_t device) const { return ticks[op * devices + device]; }
};

// On a graph of HIOS's family `layered` with 4 to 7 ops, or of DiviML's family `er` with some ten; 2 or 3 devices of
// unequal speed.
Result<AssignmentProblem> random_assignment_problem(Random& random);

// Minimise the end of the last op. Ops of one device run one after the other.
CpModel schedule_model(const AssignmentProblem& problem);
// Minimise the largest load: a device's ops, and for each op with a reader elsewhere its longest delay.
CpModel placement_model(const AssignmentProblem& problem, Random& random);

// The optimum; nothing: no assignment fits the memory. `tried` is false if there are too many to try.
std::optional<int64_t> least_end(const AssignmentProblem& problem, bool& tried);
std::optional<int64_t> least_load(const AssignmentProblem& problem, bool& tried);

}  // namespace heddle::bench
