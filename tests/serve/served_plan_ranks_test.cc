// A plan that several ranks serve together; the ranks are threads of this process.
#include <gmock/gmock.h>

#include "runtime/local_transport.h"
#include "served_plans.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// One core of this machine for each rank.
TEST_F(ServedPlans, SeveralRanksAnswerAsTheUnsplitModel) {
  for (const Wanted& wanted : {Wanted{.planner = "heft"}, Wanted{.planner = "heft", .batch = 4},
                               Wanted{.planner = "pipeline", .objective = Objective::kThroughput}}) {
    SCOPED_TRACE(wanted.planner);
    const auto problem = problem_here(wanted);
    const auto path = write_plan(problem, wanted);
    ASSERT_EQ(devices_used(), 2U);
    std::string placement;
    for (const auto& d : problem.cluster->devices())
      if (d.name != singles_[1]) placement += (placement.empty() ? "" : ",") + d.name;
    placement += ";" + singles_[1];
    auto ends = test::make_local_transports(2);
    const auto open = [&](Transport& transport, const std::string& plan) {
      RankGroup group(transport);
      auto opened = open_plan_on_ranks(group, plan, placement, 0, {});
      EXPECT_TRUE(opened.ok()) << opened.error().to_string();
      return opened.ok() ? std::optional(std::move(*opened)) : std::nullopt;
    };
    std::thread other([&] {
      const auto opened = open(*ends[1], "");
      if (opened) {
        EXPECT_TRUE(opened->executor->serve_ranks({}).ok());
      }
    });
    std::promise<const OpenedPlan*> ready;
    std::thread first([&] {
      const auto opened = open(*ends[0], path);
      ready.set_value(opened ? &*opened : nullptr);
      if (opened) {
        EXPECT_TRUE(opened->executor->serve_ranks({}).ok());
      }
    });
    const OpenedPlan* const opened = ready.get_future().get();
    const auto executor = opened != nullptr ? opened->executor : nullptr;
    if (executor) {
      const auto status = serve(path, 0, opened);
      EXPECT_TRUE(status.ok()) << status.error().to_string();
      if (status.ok()) {
        expect_right_from_many(4, 10);
        const auto loaded = local_->load("net");
        EXPECT_THAT(loaded.ok() ? "" : loaded.error().to_string(), HasSubstr("several ranks"));
        expect_right(3);
      }
      executor->close();
    }
    first.join();
    other.join();
    local_.reset();
  }
}

}  // namespace
}  // namespace heddle
