// Small problems of every kind, small enough that all decisions of a plan can be tried.
#pragma once

#include "heddle/base/random.h"
#include "heddle/plan/problem.h"

namespace heddle::test {

// 2 to 7 ops and 1 to 4 devices (few ops where there are many devices): GPUs behind links of every duplex,
// with and without a shared bus, links among GPUs, CPUs that share cores, memory limits, copy engines,
// contention on and off, shared parameters, tensors with several readers, ops that some devices cannot run,
// known segments faster or slower than their ops, some devices not to be used.
Problem random_small_problem(Random& random, Objective objective);

// The least value of all checked plans that follow from an assignment, an order and a choice among the known
// segments; infinite when no plan passes the checker. `plans` counts what was timed.
double best_of_all_plans(const Problem& problem, int64_t& plans);

}  // namespace heddle::test
