// Fork-join blocks and destructive bounds: what paths and areas by themselves do not see.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heddle/base/gap.h"
#include "heddle/base/units.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/relaxation.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

// Blocks in a row: a fork, `width` ops of 10 us side by side, a join that is the next fork. Every tensor
// takes 1 us + `bytes` us to the other device.
Problem blocks_in_a_row(int blocks, int width, int64_t bytes, int gpus = 2) {
  std::vector<OpSpec> ops{{"j0", {}, bytes}};
  for (int b = 1; b <= blocks; ++b) {
    OpSpec join{"j" + std::to_string(b), {}, bytes};
    for (int i = 0; i < width; ++i) {
      ops.push_back(
          {"o" + std::to_string(b) + "_" + std::to_string(i), {"j" + std::to_string(b - 1)}, bytes});
      join.inputs.push_back(ops.back().name);
    }
    ops.push_back(join);
  }
  std::vector<std::vector<double>> times(ops.size(), std::vector<double>(static_cast<size_t>(gpus), 10));
  // Joins take 1 us.
  for (size_t v = 0; v < ops.size(); ++v) {
    if (ops[v].name[0] == 'j') times[v].assign(static_cast<size_t>(gpus), 1);
  }
  return make_problem(make_graph(ops), make_gpu_cluster(gpus), times);
}

// Moving costs far more than the 20 us that a second device could save: each block takes 20 us on one device,
// and the whole 1 + 3 x 21 = 64. A path alone is 1 + 3 x 11 = 34, the area 32 + 2.
TEST(ForkJoinBlocks, StayOnOneDeviceWhereMovingIsDearer) {
  const Problem p = blocks_in_a_row(3, 2, 100);
  const Bound bound = lower_bound(p);
  EXPECT_NEAR(bound.us, 64, 0.7);
  EXPECT_LE(bound.us, 64);
  EXPECT_EQ(bound.proof.reason, "critical path over fork-join blocks");
}

// Cheap moves (1 us latency on each of two links, 1 byte): of four ops two go elsewhere, there in 3 us and
// back in 3. Here 40 us are shared: x here and 40 - x there in a window of span - 6: at least 23 a block.
TEST(ForkJoinBlocks, CountsTheWindowThatMovesLeaveOnOtherDevices) {
  const Problem p = blocks_in_a_row(2, 4, 1);
  EXPECT_GE(lower_bound(p).us, 1 + 2 * (22.5 + 1));
  EXPECT_LE(lower_bound(p).us, 1 + 2 * (26 + 1));
}

TEST(ForkJoinBlocks, HeadsAndTailsOfTheRelaxationKnowThem) {
  const Problem p = blocks_in_a_row(3, 2, 100);
  const Relaxation r = relax(p);
  const size_t last = p.graph->num_ops() - 1, k = r.devices.size();
  for (size_t i = 0; i < k; ++i) {
    EXPECT_NEAR(r.earliest_finish[last * k + i], 64, 0.7);
    EXPECT_NEAR(r.remaining[0 * k + i], 64, 0.7);
  }
  // Out of time: paths alone.
  const CancelToken token;
  token.cancel();
  const Relaxation hurried = relax(p, Deadline::never(token));
  EXPECT_NEAR(hurried.earliest_finish[last * k], 34, 1e-9);
}

TEST(DestructiveBound, KeepsWhatIsKnownAndStaysBelowThePlan) {
  const Problem p = blocks_in_a_row(2, 4, 1);
  const Bound known = lower_bound(p);
  const Bound better = destructive_bound(p, known, kInfinity);
  EXPECT_GE(better.us, known.us);
  EXPECT_LE(better.us, 1 + 2 * (26 + 1));
  EXPECT_LE(destructive_bound(p, {}, known.us + 1e-3).us, known.us + 1e-3);
  Problem throughput = p;
  throughput.objective = Objective::kThroughput;
  EXPECT_EQ(destructive_bound(throughput, {3, "told"}, kInfinity).us, 3);
}

// CPUs without a limit run the block's ops at once: 1 + 10 + 1.
TEST(DestructiveBound, IsThePathWhereCpusRunOpsAtOnce) {
  Problem p = make_problem(
      make_graph({{"fork", {}, 1}, {"a", {"fork"}, 1}, {"b", {"fork"}, 1}, {"join", {"a", "b"}, 1}}),
      make_cpu_cluster({{0}}), {{1}, {10}, {10}, {1}});
  p.execution.transfers = Transfers::kWithinRuns;
  p.execution.unlimited_cpus = true;
  auto times = std::make_shared<TransferTimes>();
  times->us.assign(p.graph->num_tensors(), 0);
  p.transfers = times;
  ASSERT_TRUE(validate(p).ok());
  EXPECT_NEAR(lower_bound(p).us, 12, 1e-9);
  EXPECT_NEAR(destructive_bound(p, {}, kInfinity).us, 12, 1e-9);
  EXPECT_NEAR(relax(p).earliest_finish.back(), 12, 1e-9);
}

TEST(RelativeGap, IsNeverNegativeAndInfiniteWithoutABound) {
  EXPECT_DOUBLE_EQ(relative_gap(12, 10), 0.2);
  EXPECT_DOUBLE_EQ(relative_gap(10 * (1 - 1e-12), 10), 0);
  EXPECT_DOUBLE_EQ(relative_gap(0, 0), 0);
  EXPECT_TRUE(std::isinf(relative_gap(1, 0)));
}

}  // namespace
}  // namespace heddle::test
