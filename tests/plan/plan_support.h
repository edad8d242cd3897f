// Small and random problems, and a naive simulator, for the tests of plan/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "support/given_problem.h"

namespace heddle::test {

// An op with its inputs by op name, one output tensor "<name>.out" of `bytes`, and parameters by name and
// bytes.
struct OpSpec {
  std::string name;
  std::vector<std::string> inputs;
  int64_t bytes = 0;
  std::vector<std::pair<std::string, int64_t>> params;
  bool is_output = false;
};
// Ops in topological order; an input that names no op is a model input of 8 bytes.
std::shared_ptr<const Graph> make_graph(const std::vector<OpSpec>& ops);

// One host, `gpus` GPUs g0, g1, ... each on its own full-duplex link "pcie<i>" to host memory: 1 byte per us,
// latency 1 us, `engines` copy engines; a half-duplex bus "root" over all links when `with_bus`.
std::shared_ptr<const Cluster> make_gpu_cluster(int gpus, int engines = 2, bool with_bus = false,
                                                int64_t memory = 0);
// One host with CPU devices on these core sets: c0, c1, ...
std::shared_ptr<const Cluster> make_cpu_cluster(const std::vector<std::vector<int>>& cores);

// As part of a test's name.
std::string objective_test_name(Objective objective);

struct RandomShape {
  int ops = 12;
  int max_devices = 4;
  double edge_probability = 0.25;
  Objective objective = Objective::kLatency;
  bool known_segments = false;
  bool cold_start =
      false;  // cold: direct host access, resident and dropped parameters, fixed sharing factors
};
// Any topology with at least one device that runs everything: CPUs with overlapping cores, GPUs behind buses,
// one or two hosts, shared parameters, tensors with several readers, impossible ops, every duplex and engine
// count.
Problem random_problem(Random& random, const RandomShape& shape);

// Decisions that build_plan accepts, or nothing when routes forbid the drawn devices.
Assignment random_assignment(Random& random, const Problem& problem);
// A plan whose steps come in a random topological order (not the builder's), segments of one or more ops.
Plan random_plan(Random& random, const Problem& problem);

// Start times by the definition, O(n^2): a step starts when every earlier step that it needs, or that shares
// a resource with it, is done.
struct NaiveTimes {
  std::vector<double> start, finish;
  double makespan = 0;
};
NaiveTimes naive_times(const Problem& problem, const Plan& plan);
// Must step `later` wait for step `earlier` of the list?
bool must_wait(const Problem& problem, const Plan& plan, size_t later, size_t earlier);
double naive_duration(const Problem& problem, const Plan& plan, size_t step);
bool is_free(const Problem& problem, DeviceId from, DeviceId to);

}  // namespace heddle::test
