// A problem with one change of its hardware, for "what if" questions.
#pragma once

#include "heddle/base/status.h"
#include "heddle/cluster/edit.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct ProblemEdit {
  ClusterEdit cluster;
  double transfers = 1;  // transfers with given times are this many times as fast
};

// Times follow the devices: one more device has the times of the one that it is like, a scaled one has them
// divided by the factor. Where transfers have given times, one more device exchanges data with the one that it
// is like in the longest time that any other device needs for it. Fails where the edited problem is not valid.
Result<Problem> edit_problem(const Problem& problem, const ProblemEdit& edit);

}  // namespace heddle
