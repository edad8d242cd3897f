#include "heddle/solve/self_test.h"

#include <gtest/gtest.h>

#include <openvino/openvino.hpp>
#include <openvino/opsets/opset13.hpp>
#include <thread>
#include <vector>

namespace heddle {
namespace {

TEST(HighsSelfTest, AnswersTheShapesRightThatRelease114GotWrong) {
  const auto result = highs_self_test();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->models, 41);
  EXPECT_EQ(result->version.substr(0, 2), "1.");
  EXPECT_NE(result->version.substr(0, 4), "1.14");
}

TEST(CpSatSelfTest, AnswersItsShapesRight) {
  const auto result = cp_sat_self_test();
  if (!result.ok() && result.error().code() == Code::kUnsupported) GTEST_SKIP() << result.error().to_string();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->models, 61);
  EXPECT_FALSE(result->version.empty());
}

// Both tests, one after the other; what went wrong, apart from a missing CP-SAT.
std::string problem_of_both() {
  const auto highs = highs_self_test();
  if (!highs.ok()) return highs.error().to_string();
  const auto cp_sat = cp_sat_self_test();
  return cp_sat.ok() || cp_sat.error().code() == Code::kUnsupported ? "" : cp_sat.error().to_string();
}

TEST(SolverSelfTest, BothSolversAnswerInOneProcessAgainAndAgain) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(problem_of_both(), "");
}

TEST(SolverSelfTest, ThreadsMayRunItAtOnce) {
  std::vector<std::string> problems(4);
  std::vector<std::thread> threads;
  for (auto& problem : problems) threads.emplace_back([&problem] { problem = problem_of_both(); });
  for (auto& thread : threads) thread.join();
  for (const auto& problem : problems) EXPECT_EQ(problem, "");
}

// Computes 2x for x = 3 on the CPU plugin, which brings its own TBB.
float double_on_cpu(ov::Core& core) {
  const auto x = std::make_shared<ov::opset13::Parameter>(ov::element::f32, ov::Shape{1});
  const auto two = ov::opset13::Constant::create(ov::element::f32, ov::Shape{1}, {2});
  const auto product = std::make_shared<ov::opset13::Multiply>(x, two);
  const auto model = std::make_shared<ov::Model>(ov::OutputVector{product}, ov::ParameterVector{x});
  auto request = core.compile_model(model, "CPU").create_infer_request();
  request.get_input_tensor().data<float>()[0] = 3;
  request.infer();
  return request.get_output_tensor().data<float>()[0];
}

TEST(SolverSelfTest, InferenceBeforeAndAfterItIsUnharmed) {
  ov::Core core;
  EXPECT_FLOAT_EQ(double_on_cpu(core), 6);
  EXPECT_EQ(problem_of_both(), "");
  EXPECT_FLOAT_EQ(double_on_cpu(core), 6);
}

}  // namespace
}  // namespace heddle
