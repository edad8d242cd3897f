// Problems of every kind for the planners' tests.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/planners/planner.h"
#include "support/given_problem.h"

namespace heddle::test {

// Set-up that cannot fail.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "test set-up: %s\n", result.error().to_string().c_str());
    std::abort();
  }
  return std::move(result).value();
}

struct Wire {
  int from, to;
  int64_t bytes;
};
// n ops, one tensor a wire, parameters of op v of params[v] bytes (none when empty).
std::shared_ptr<const Graph> make_graph(int ops, const std::vector<Wire>& wires,
                                        const std::vector<int64_t>& params = {});
// `gpus` GPUs with a link between each two of 1 byte per us and no latency; memory 0: not limited.
std::shared_ptr<const Cluster> make_mesh(int gpus, int64_t memory = 0);
// CPU devices on these core sets.
std::shared_ptr<const Cluster> make_cpus(const std::vector<std::vector<int>>& cores, int64_t memory = 0);
// Two GPUs, each with a link of 1 byte a us from host memory (on one bus, or by itself), and a link of 10
// bytes a us between them. No latency, no copy engines.
std::shared_ptr<const Cluster> two_gpus(bool one_bus);
std::vector<Wire> random_wires(Random& random, int ops, double probability);
std::vector<std::vector<double>> random_times(Random& random, size_t ops, size_t devices);
// GPUs behind a shared bus and CPUs that share cores, one host; `memory` of each GPU.
std::shared_ptr<const Cluster> make_mixed(int64_t memory = 0);

// The least value over all decisions of one lane, by trying all (for a handful of ops).
double brute_force_us(const Problem& problem);

// The planner's plan; a failure of the test, and an empty plan, when it gives none.
PlanResult must_plan(const char* planner, const Problem& problem, double seconds = 20);
// Whether CP-SAT can be loaded into this build.
bool solver_is_here();

}  // namespace heddle::test

#define HEDDLE_NEEDS_CP_SAT \
  if (!heddle::test::solver_is_here()) GTEST_SKIP() << "CP-SAT cannot be loaded into this build"
