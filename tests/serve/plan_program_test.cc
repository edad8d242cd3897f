// heddle serve PLAN as its users run it: from a model to an answer, another plan in the file, and what is
// refused with which exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "serve_process.h"
#include "skip_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class PlanProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (single_cores().size() < 2) GTEST_SKIP() << "this machine has no two cores";
    std::ofstream(folder_.file("skip.onnx"), std::ios::binary) << skip_model();
  }
  int plan(const std::string& planner) const {
    const auto cores = single_cores();
    Process made({HEDDLE_PROGRAM, "plan", folder_.file("skip.onnx"), "--batch", "1", "--planner", planner,
                  "--devices", cores[0] + "," + cores[1], "--time-limit", "1", "--store",
                  folder_.file("store"), "--quiet", "-o", folder_.file("plan.json")});
    while (!made.line().empty()) continue;
    return made.wait();
  }
  std::vector<std::string> serve_command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {
        HEDDLE_PROGRAM, "serve",  folder_.file("plan.json"), "--port", "0", "--grpc-port", "0",
        "--json",       "--quiet"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  int refused(const std::vector<std::string>& more = {}) const {
    Process server(serve_command(more));
    return server.wait();
  }

  const ServeFolder folder_;
};

TEST_F(PlanProgram, APlanFileIsServedAndAnotherTakesOver) {
  ASSERT_EQ(plan("heft"), 0);
  Process server(serve_command());
  const auto started = parse_json(server.line());
  ASSERT_TRUE(started.ok());
  EXPECT_EQ((*started)["planner"], "heft");
  const int port = (*started)["port"];
  const auto infer = [port] {
    return RawClient(port).ask("POST", "/v2/models/skip/infer",
                               R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32",
                                   "data": [1, 2, 3]}], "outputs": [{"name": "z"}]})");
  };
  const auto answer = infer();
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto json = parse_json(answer.body);
  ASSERT_TRUE(json.ok());
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR((*json)["outputs"][0]["data"][i].get<double>(), z_of(static_cast<float>(i + 1), i), 1e-4);

  ASSERT_EQ(plan("greedy"), 0);
  EXPECT_TRUE(eventually([port] {
    const auto status = parse_json(RawClient(port).ask("GET", "/v2/status").body);
    return status.ok() && (*status)["planner"] == "greedy";
  }));
  EXPECT_EQ(infer().status, 200);
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(PlanProgram, WhatCannotBeServedEndsWithStatusTwo) {
  ASSERT_EQ(plan("heft"), 0);
  EXPECT_EQ(refused({"--devices", "cpu0"}), 2);
  EXPECT_EQ(refused({"--max-batch", "4"}), 2);
  EXPECT_EQ(refused({"--replan-drift", ".2"}), 2);
  EXPECT_EQ(refused({"--rank-devices", "cpu0;cpu1"}), 2);
  std::ofstream(folder_.file("skip.onnx"), std::ios::binary) << skip_model(5);
  EXPECT_EQ(refused(), 2);
  std::filesystem::remove(folder_.file("skip.onnx"));
  EXPECT_EQ(refused(), 2);
}

}  // namespace
}  // namespace heddle
