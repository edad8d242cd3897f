#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/random.h"
#include "heddle/cost/cost.h"

namespace heddle {
namespace {

std::vector<OpId> ids(std::initializer_list<int> values) {
  std::vector<OpId> out;
  for (int v : values) out.push_back(OpId(v));
  return out;
}

Cost measured(double us, double spread = 0) {
  return {.us = us, .origin = Origin::kMeasured, .rel_spread = spread};
}

TEST(CostTable, UnsetEntriesAreImpossible) {
  const CostTable t(2, 3);
  EXPECT_EQ(t.us(OpId(1), DeviceId(2)), kImpossible);
  EXPECT_EQ(t.num_ops(), 2U);
  EXPECT_EQ(t.num_devices(), 3U);
}

TEST(CostTable, AnUnknownSegmentTakesTheSumOfItsOpsAndTheWorstOrigin) {
  CostTable t(3, 1);
  t.set(OpId(0), DeviceId(0), measured(10, 0.1));
  t.set(OpId(1), DeviceId(0), {.us = 30, .origin = Origin::kScaled, .rel_spread = 0.3});
  t.set(OpId(2), DeviceId(0), {.us = 5, .origin = Origin::kGiven});
  const Cost sum = t.segment(ids({0, 1}), DeviceId(0));
  EXPECT_EQ(sum.us, 40);
  EXPECT_EQ(sum.origin, Origin::kScaled);
  EXPECT_NEAR(sum.rel_spread, (10 * 0.1 + 30 * 0.3) / 40, 1e-7);
  EXPECT_EQ(t.segment(ids({2}), DeviceId(0)).origin, Origin::kGiven);
}

TEST(CostTable, ASegmentWithAnImpossibleOpIsImpossible) {
  CostTable t(2, 1);
  t.set(OpId(0), DeviceId(0), measured(10));
  EXPECT_EQ(t.segment(ids({0, 1}), DeviceId(0)).us, kImpossible);
}

TEST(CostTable, AKnownSegmentOverridesTheSumOnItsDeviceOnlyAndIsReplacedByTheNext) {
  CostTable t(2, 2);
  for (int d : {0, 1}) {
    for (int o : {0, 1}) t.set(OpId(o), DeviceId(d), measured(10));
  }
  t.set_segment({ids({0, 1}), DeviceId(1), measured(12)});
  EXPECT_EQ(t.segment(ids({0, 1}), DeviceId(0)).us, 20);
  EXPECT_EQ(t.segment(ids({0, 1}), DeviceId(1)).us, 12);
  EXPECT_TRUE(t.knows_segment(ids({0, 1}), DeviceId(1)));
  EXPECT_FALSE(t.knows_segment(ids({0, 1}), DeviceId(0)));
  EXPECT_FALSE(t.knows_segment(ids({0}), DeviceId(1)));
  t.set_segment({ids({0, 1}), DeviceId(1), measured(11)});
  EXPECT_EQ(t.segment(ids({0, 1}), DeviceId(1)).us, 11);
  EXPECT_EQ(t.segments().size(), 1U);
  t.set_segment({ids({0}), DeviceId(1), measured(3)});
  EXPECT_EQ(t.segment(ids({0}), DeviceId(1)).us, 3);
}

// 10 + 30 known as 20: shared out 5 and 15. The dearer segment {1, 2} changes nothing.
TEST(CostTable, BoundTimesShareAKnownSegmentOutInProportion) {
  CostTable t(3, 1);
  const double us[] = {10, 30, 7};
  for (int o = 0; o < 3; ++o) t.set(OpId(o), DeviceId(0), measured(us[o]));
  t.set_segment({ids({0, 1}), DeviceId(0), measured(20)});
  t.set_segment({ids({1, 2}), DeviceId(0), measured(90)});
  const auto bound = t.bound_times();
  EXPECT_NEAR(bound[0], 5, 1e-9);
  EXPECT_NEAR(bound[1], 15, 1e-9);
  EXPECT_EQ(bound[2], 7);
}

TEST(CostTable, AnOpThatRunsOnlyInsideASegmentHasAFiniteBound) {
  CostTable t(2, 1);
  t.set(OpId(0), DeviceId(0), measured(10));
  t.set_segment({ids({0, 1}), DeviceId(0), measured(8)});
  const auto bound = t.bound_times();
  EXPECT_LE(bound[0] + bound[1], 8);
  EXPECT_TRUE(std::isfinite(bound[1]));
}

// Whatever segments are known and however the ops are partitioned, the bound times never exceed the cost.
TEST(CostTable, NoPartitionIntoSegmentsCostsLessThanTheSumOfItsBoundTimes) {
  Random rng(11);
  for (int round = 0; round < 500; ++round) {
    const int n = static_cast<int>(rng.between(2, 9));
    CostTable t(static_cast<size_t>(n), 2);
    for (int o = 0; o < n; ++o) {
      for (int d = 0; d < 2; ++d) {
        if (!rng.chance(0.1))
          t.set(OpId(o), DeviceId(d), measured(rng.chance(0.1) ? 0 : rng.uniform(0.1, 100)));
      }
    }
    const auto random_set = [&] {
      std::vector<OpId> ops;
      for (int o = 0; o < n; ++o) {
        if (rng.chance(0.4)) ops.push_back(OpId(o));
      }
      return ops;
    };
    for (int s = 0; s < 12; ++s) {
      auto ops = random_set();
      if (!ops.empty()) t.set_segment({ops, DeviceId(s % 2), measured(rng.uniform(0, 150))});
    }
    const auto bound = t.bound_times();
    for (int o = 0; o < n; ++o) {
      for (int d = 0; d < 2; ++d)
        EXPECT_LE(bound[static_cast<size_t>(o * 2 + d)], t.us(OpId(o), DeviceId(d)));
    }
    for (int trial = 0; trial < 40; ++trial) {
      const DeviceId device(static_cast<int>(rng.below(2)));
      // Known segments first, as far as they fit together, then random groups of the rest.
      std::vector<bool> taken(static_cast<size_t>(n), false);
      double cost = 0, sum = 0;
      const auto take = [&](const std::vector<OpId>& ops) {
        cost += t.segment(ops, device).us;
        for (OpId op : ops) {
          taken[op.index()] = true;
          sum += bound[op.index() * 2 + device.index()];
        }
      };
      for (const SegmentCost& known : t.segments()) {
        const bool free =
            std::none_of(known.ops.begin(), known.ops.end(), [&](OpId op) { return taken[op.index()]; });
        if (known.device == device && free && rng.chance(0.7)) take(known.ops);
      }
      for (int o = 0; o < n; ++o) {
        if (taken[static_cast<size_t>(o)]) continue;
        std::vector<OpId> group;
        for (int p = o; p < n; ++p) {
          if (!taken[static_cast<size_t>(p)] && (p == o || rng.chance(0.3))) group.push_back(OpId(p));
        }
        take(group);
      }
      if (std::isfinite(cost)) {
        EXPECT_GE(cost, sum - 1e-9);
      }
    }
  }
}

TEST(CostTable, OriginsHaveTheNamesOfTheDocuments) {
  EXPECT_STREQ(origin_name(Origin::kMeasured), "measured");
  EXPECT_STREQ(origin_name(Origin::kGiven), "given");
  EXPECT_STREQ(origin_name(Origin::kInterpolated), "interpolated");
  EXPECT_STREQ(origin_name(Origin::kScaled), "scaled");
  EXPECT_STREQ(origin_name(Origin::kEstimated), "estimated");
}

TEST(CostTable, WithoutForbiddenOpsTheirSegmentsAreGone) {
  CostTable costs(2, 2);
  for (size_t op = 0; op < 2; ++op) {
    for (size_t d = 0; d < 2; ++d) costs.set(OpId(op), DeviceId(d), {.us = 5});
  }
  for (size_t d = 0; d < 2; ++d) costs.set_segment({{OpId(0), OpId(1)}, DeviceId(d), {.us = 7}});
  const CostTable left = costs.without([](OpId op, DeviceId d) { return op == OpId(1) && d == DeviceId(0); });
  EXPECT_EQ(left.us(OpId(1), DeviceId(0)), kImpossible);
  EXPECT_EQ(left.us(OpId(0), DeviceId(0)), 5);
  const OpId both[] = {OpId(0), OpId(1)};
  EXPECT_FALSE(left.knows_segment(both, DeviceId(0)));
  EXPECT_EQ(left.segment(both, DeviceId(0)).us, kImpossible);
  EXPECT_EQ(left.segment(both, DeviceId(1)).us, 7);
}

}  // namespace
}  // namespace heddle
