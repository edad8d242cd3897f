// The timer of cold starts says what the evaluator says.
#include "sortinghat/cold_timer.h"

#include <gtest/gtest.h>

#include "core/configurations.h"
#include "heddle/plan/checker.h"
#include "planners_support.h"
#include "random_small.h"
#include "sortinghat/cold_anneal.h"

namespace heddle::test {
namespace {

ColdDecisions random_decisions(Random& random, const ColdTables& tables) {
  const FlatProblem& flat = tables.flat();
  ColdDecisions d;
  std::vector<uint32_t> missing(flat.num_ops(), 0), ready;
  for (uint32_t v = 0; v < flat.num_ops(); ++v) {
    missing[v] = static_cast<uint32_t>(flat.inputs(v).size());
    if (missing[v] == 0) ready.push_back(v);
  }
  while (!ready.empty()) {
    const size_t at = random.below(ready.size());
    const uint32_t v = ready[at];
    ready.erase(ready.begin() + static_cast<int64_t>(at));
    d.order.push_back(v);
    for (const uint32_t t : flat.outputs(v)) {
      for (const uint32_t w : flat.readers(t)) {
        if (--missing[w] == 0) ready.push_back(w);
      }
    }
  }
  for (uint32_t v = 0; v < flat.num_ops(); ++v) {
    const size_t i = random.below(flat.num_devices());
    d.device.push_back(static_cast<uint8_t>(i));
    d.lead.push_back(static_cast<uint32_t>(random.below(6)));
    const size_t ways = tables.ways(i).size();
    const bool in_place = tables.in_place_us(v, i) < kImpossible && random.chance(0.4);
    d.way.push_back(in_place ? kInPlace : static_cast<uint8_t>(ways > 0 ? random.below(ways) : 0));
  }
  return d;
}

void add_host_access(Random& random, Problem& p) {
  auto costs = std::make_shared<CostTable>(*p.costs);
  for (size_t v = 0; v < costs->num_ops(); ++v) {
    for (size_t d = 0; d < costs->num_devices(); ++d) {
      if (random.chance(0.6)) costs->set_host_access(OpId(v), DeviceId(d), random.uniform(0.5, 30));
    }
  }
  p.costs = costs;
  p.execution.fixed_sharing = random.chance(0.3);
}

TEST(ColdTimer, TimesAsTheEvaluatorDoes) {
  Random random(17);
  int compared = 0, helped = 0, in_place = 0;
  for (int round = 0; round < 1500; ++round) {
    Problem p = random_small_problem(random, Objective::kColdLatency);
    add_host_access(random, p);
    if (!validate(p).ok() || !p.costs->segments().empty()) continue;
    const ColdTables tables(p, configurations(p).front());
    ColdTimer timer(tables);
    const ColdDecisions d = random_decisions(random, tables);
    const double us = timer.time(d);
    if (!(us < kImpossible)) continue;
    const Plan plan = timer.plan(d);
    const auto timeline = evaluate(p, plan);
    ASSERT_TRUE(timeline.ok()) << round << ": " << timeline.error().to_string();
    ASSERT_NEAR(timeline->makespan_us, us, 1e-9 * us) << round;
    for (const Step& s : plan.steps) helped += s.kind == StepKind::kLoad && s.route >= 0;
    for (const Segment& s : plan.segments) in_place += s.host_access;
    // As decisions again, they are the same plan.
    const auto back = cold_decisions(tables, plan);
    ASSERT_TRUE(back) << round;
    ASSERT_NEAR(timer.time(*back), us, 1e-9 * us) << round;
    ++compared;
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(helped, 10);
  EXPECT_GT(in_place, 100);
}

// Trying changes nothing, and placing gives what was tried.
TEST(ColdTimer, TriesWithoutATrace) {
  Random random(18);
  for (int round = 0; round < 300; ++round) {
    Problem p = random_small_problem(random, Objective::kColdLatency);
    add_host_access(random, p);
    if (!validate(p).ok()) continue;
    const ColdTables tables(p, configurations(p).front());
    ColdDecisions d = random_decisions(random, tables);
    d.lead.assign(d.lead.size(), 0);
    ColdTimer whole(tables), steps(tables);
    if (!(whole.time(d) < kImpossible)) continue;
    for (const uint32_t v : d.order) {
      for (uint8_t i = 0; i < tables.flat().num_devices(); ++i) steps.try_op(v, i, 0);
      const double tried = steps.try_op(v, d.device[v], d.way[v]);
      ASSERT_EQ(steps.place(v, d.device[v], d.way[v]), tried) << round;
      ASSERT_EQ(tried, whole.finish_us(v)) << round;
    }
  }
}

}  // namespace
}  // namespace heddle::test
