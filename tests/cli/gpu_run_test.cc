// scripts/gpu_run.py: its mistakes, and every stage on the host's stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Ran gpu_run(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  std::vector<std::string> command = {"python3", std::string(HEDDLE_SOURCE_DIR) + "/scripts/gpu_run.py",
                                      "--heddle", HEDDLE_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command, folder.path(), {}, 600);
}

TEST(GpuRun, AnUnknownStageIsNamedWithThoseThatThereAre) {
  const TemporaryFolder folder;
  const Ran ran = gpu_run(folder, {"--stages", "fast"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("unknown stage 'fast'; stages: correctness, prediction"));
}

// Figures as they would come from a GPU, each beside what the report makes of it.
TEST(GpuRun, TheReportSaysWhichGoalsAreReached) {
  const TemporaryFolder folder;
  const auto step = [](const Json& out, int status = 0) {
    return Json{
        {"optional", false}, {"status", status}, {"out", out.dump()}, {"err", ""}, {"files", Json::object()}};
  };
  const auto in_time = [](int count) { return Json{{"requests", {{"in_time", count}}}}; };
  Json steps = {{"correctness/torch a", step({{"torch", "2.11"}, {"outputs_equal", true}})},
                {"correctness/torch b", step({{"torch", "2.11"}, {"outputs_equal", false}}, 1)},
                {"links/copies again",
                 step({{"copies", Json::array()},
                       {"links", Json::array()},
                       {"at_once", {{{"devices", {"gpu0"}}, {"part", 0.97}, {"shared", false}}}},
                       {"in_place", {{{"device", "gpu0"}, {"bytes_per_s", 5e10}, {"part", 0.51}}}}})},
                {"unequal/auto simulated", step(Json::array({in_time(120)}))},
                {"unequal/np simulated", step(Json::array({in_time(100)}))},
                {"unequal/auto served", step(in_time(121))},
                {"unequal/np served", step(in_time(100))}};
  folder.write("raw.json", Json{{"rehearsal", false}, {"steps", steps}}.dump());
  const Ran ran = run_command({"python3", "-c",
                               "import json, sys; sys.path.insert(0, sys.argv[1]); import gpu_report; "
                               "print(gpu_report.report(json.load(open('raw.json'))))",
                               std::string(HEDDLE_SOURCE_DIR) + "/scripts"},
                              folder.path());
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* row :
       {"| outputs equal to torch's | 1 of 2 models | not reached |",
        "| at once: gpu0 | 97.0% of the free rate, planned 100.0%: off by 3.0% | reached |",
        "| host access of gpu0 under copies | 51.0% of the free rate, planned 50.0%: off by 2.0% | reached |",
        "| pooled pipelines against np, as served | +21.0% requests in time, +20.0% simulated | reached |"})
    EXPECT_THAT(ran.out, HasSubstr(row));
}

TEST(GpuRun, AnotherTorchThanTheBundlesIsNamedInOneLine) {
  if (run_heddle({"devices", "--backends"}, ".").out.find("torch") == std::string::npos)
    GTEST_SKIP() << "the backend torch is not built in";
  const TemporaryFolder folder;
  const Ran ran = run_command(
      {"sh", "-c",
       "cp $0/scripts/gpu_*.py $0/scripts/onnx_file.py . && echo 'torch 2.11.0 with CUDA 13.0' >built_for && "
       "mkdir torch && touch torch/__init__.py && "
       "printf \"__version__ = '2.10.0+cu128'\\ncuda: Optional[str] = '12.8'\\n\" >torch/version.py && "
       "python3 gpu_run.py --heddle $1 --rehearse --stages links",
       HEDDLE_SOURCE_DIR, HEDDLE_PROGRAM},
      folder.path());
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(
      ran.err,
      HasSubstr(" has torch 2.10.0 with CUDA 12.8; the bundle is built for torch 2.11.0 with CUDA 13.0\n"));
}

TEST(GpuRun, EveryStageRunsOnTheStandInAndIsNotRunAgain) {
  if (run_heddle({"devices", "--backends"}, ".").out.find("torch") == std::string::npos)
    GTEST_SKIP() << "the backend torch is not built in";
  const TemporaryFolder folder;
  const Ran ran = gpu_run(folder, {"--rehearse", "-o", "report"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const Ran report = run_command({"cat", "report/report.md"}, folder.path());
  EXPECT_THAT(report.out, HasSubstr("A rehearsal on the host"));
  for (const char* wrong : {"Not run yet", "failed", "NOT EQUAL"})
    EXPECT_THAT(report.out, Not(HasSubstr(wrong)));
  for (const char* figure :
       {"| outputs equal | 1 of 1 models | reached |", "| predicted against measured | ",
        "| resnet-18,image=32 bf16 | Heddle ", "| host access of gpu0 under copies | ",
        "| pooled pipelines against np, as served | +", "| resnet-18,image=32: Heddle's choice | ",
        "| gpu0 to host | off by ", "| two convolutions, 16 x 16 | in turn over at once ", "| crossover | ",
        "| at once | each alone | t(S) measured |", "| resnet-18,image=32: order | ",
        "| p2 while all are busy | ", " predicted at shared rates | ", "times the better alone | "})
    EXPECT_THAT(report.out, HasSubstr(figure));
  const Ran again = gpu_run(folder, {"--rehearse", "-o", "report"});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, Not(HasSubstr(": ended")));
}

TEST(GpuRun, LittleTimeGivesTheFirstFiguresOfAStage) {
  if (run_heddle({"devices", "--backends"}, ".").out.find("torch") == std::string::npos)
    GTEST_SKIP() << "the backend torch is not built in";
  const TemporaryFolder folder;
  const Ran ran = gpu_run(folder, {"--rehearse", "--stages", "links", "--stage-seconds", "0.001"});
  EXPECT_EQ(ran.status, 1) << "steps are left";
  EXPECT_THAT(ran.out, Not(HasSubstr("copies again")));
  const Ran rest = gpu_run(folder, {"--rehearse", "--stages", "links"});
  EXPECT_EQ(rest.status, 0) << rest.out << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("links: copies again: ended"));
}

}  // namespace
}  // namespace heddle
