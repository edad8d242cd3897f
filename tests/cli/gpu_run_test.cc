// scripts/gpu_run.py: its mistakes, and every stage on the host's stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_program.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Ran gpu_run(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  std::vector<std::string> command = {"python3", std::string(HEDDLE_SOURCE_DIR) + "/scripts/gpu_run.py",
                                      "--heddle", HEDDLE_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command, folder.path());
}

TEST(GpuRun, AnUnknownStageIsNamedWithThoseThatThereAre) {
  const TemporaryFolder folder;
  const Ran ran = gpu_run(folder, {"--stages", "fast"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("unknown stage 'fast'; stages: correctness, prediction"));
}

TEST(GpuRun, EveryStageRunsOnTheStandInAndIsNotRunAgain) {
  if (run_heddle({"devices", "--backends"}, ".").out.find("torch") == std::string::npos)
    GTEST_SKIP() << "the backend torch is not built in";
  const TemporaryFolder folder;
  const Ran ran = gpu_run(folder, {"--rehearse", "-o", "report"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const Ran report = run_command({"cat", "report/report.md"}, folder.path());
  EXPECT_THAT(report.out, HasSubstr("A rehearsal on the host"));
  EXPECT_THAT(report.out, Not(HasSubstr("Not run yet")));
  EXPECT_THAT(report.out, Not(HasSubstr("failed")));
  EXPECT_THAT(report.out, Not(HasSubstr("NOT EQUAL")));
  const Ran again = gpu_run(folder, {"--rehearse", "-o", "report"});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, Not(HasSubstr("ended well")));
}

}  // namespace
}  // namespace heddle
