// scripts/gpu_check.sh where it cannot measure, and the table that it makes of what it has measured.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_program.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

const std::string kScripts = std::string(HEDDLE_SOURCE_DIR) + "/scripts/";

TEST(GpuCheck, WrongArgumentsAreUsageErrorsThatNameThem) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--fast"}, "unknown argument '--fast'"},
      {{"--repeat"}, "--repeat needs a value"},
      {{"--repeat", "none"}, "--repeat none: expected a positive number"},
      {{"--repeat", "0"}, "--repeat 0: expected a positive number"},
      {{"--models", "a;b"}, "expected zoo models"},
      {{"-o", "nowhere/gpu.md"}, "-o nowhere/gpu.md: there is no such folder"}};
  for (const auto& [arguments, said] : cases) {
    std::vector<std::string> command = {kScripts + "gpu_check.sh"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ran ran = run_command(command, folder.path());
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(said));
    EXPECT_THAT(ran.err, HasSubstr("usage: gpu_check.sh"));
  }
}

TEST(GpuCheck, WithoutADriverItSaysSoBeforeItBuildsAnything) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    dlclose(driver);
    GTEST_SKIP() << "this machine has a CUDA driver";
  }
  const TemporaryFolder folder;
  const Ran ran = run_command({kScripts + "gpu_check.sh", "-o", folder.file("gpu.md")}, folder.path());
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("this machine has no CUDA driver (libcuda.so.1)"));
  EXPECT_EQ(ran.out, "");
}

// A cold run with two loads of 2 and 3 ms took 8 ms, a warm one 5 ms: copying first takes 10 ms.
TEST(GpuCheck, TheSummarySetsOverlappingBesideCopyingFirst) {
  const TemporaryFolder folder;
  const std::string record = R"("predicted_us": 4000, "verified": true, "outputs_equal": true, )";
  folder.write("warm.json", R"({"plan": {"plan": {"steps": [{"run": 0}]}},
    "run": {)" + record + R"("measured_us": 5000, "steps": [[0, 5000, 5000, 0]]}})");
  folder.write("cold.json",
               R"({"plan": {"plan": {"steps": [{"finish_us": 1, "load": 0}, {"load": 1}, {"run": 0}]}},
    "run": {)" + record +
                   R"("measured_us": 8000, "steps": [[0, 1, 2000, 0], [0, 1, 3000, 0], [0, 1, 900, 0]]}})");
  folder.write("torch.json", R"({"torch": "2.11", "eager_us": 7000, "graph_us": null})");
  const auto summary = [&](const std::string& torch) {
    return run_command({"python3", kScripts + "gpu_summary.py", "warm.json", "cold.json", torch},
                       folder.path());
  };
  const Ran all = summary("torch.json");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("| warm request | 5 ms | predicted 4 ms, error +25.0%; outputs equal |"));
  EXPECT_THAT(all.out, HasSubstr("| cold start, copy, then run | 10 ms | overlapping takes 0.80 of it |"));
  EXPECT_THAT(all.out, HasSubstr("| PyTorch, eager | 7 ms | torch 2.11 |"));
  EXPECT_THAT(all.out, HasSubstr("| PyTorch, one CUDA graph | - |  |"));
  const Ran without = summary("missing.json");
  EXPECT_EQ(without.status, 0);
  EXPECT_THAT(without.out, ::testing::Not(HasSubstr("PyTorch")));
}

}  // namespace
}  // namespace heddle
