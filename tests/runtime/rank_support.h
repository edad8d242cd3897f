// Plans over several ranks for the runtime's tests: random ones, and the expected results of each rank.
#pragma once

#include <functional>
#include <vector>

#include "heddle/runtime/rank_group.h"
#include "support.h"

namespace heddle::test {

using OpenDevice = std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)>;

// Runs `body` on one thread per rank of local transports.
void on_ranks(int ranks, const std::function<void(RankGroup&)>& body, bool device_memory = false);
// Assigns devices to ranks at random.
std::vector<int> deal(const Problem& problem, int ranks, uint64_t seed);

struct RankCase {
  int ops = 1, devices = 1, ranks = 2;
  bool cores = false;
  int cpus = 0;
  bool host_hub = false;
};
struct RankedPlan {
  Problem problem;
  Plan plan;
  int ranks = 1;
  std::vector<int> rank_of_device;
  std::string what;  // for messages
};
RankedPlan ranked_plan(const RankCase& c, uint64_t seed);
// The rank that computes a model output.
int rank_of_output(const RankedPlan& plan, size_t output);

// Both are called by all ranks, and compare the outputs with those of the plan run in order.
// Runs requests one after the other; rank 0 gets all outputs.
void expect_requests(RankGroup& group, const RankedPlan& plan, const OpenDevice& open, int requests);
// Runs two streams with this many requests in flight; each rank checks the outputs that it computes.
void expect_streams(RankGroup& group, const RankedPlan& plan, const OpenDevice& open, int in_flight);
// Rank 0's threads bring requests one by one, one thread a slot, and compare the outputs.
void expect_intake(RankGroup& group, const RankedPlan& plan, const OpenDevice& open, int in_flight);

// One rank's part of the plan.
std::unique_ptr<Executor> make_executor(RankGroup& group, const RankedPlan& plan, const OpenDevice& open,
                                        int in_flight);

}  // namespace heddle::test
