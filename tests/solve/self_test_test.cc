#include "heddle/solve/self_test.h"

#include <gtest/gtest.h>

#include <openvino/openvino.hpp>
#include <openvino/opsets/opset13.hpp>
#include <thread>
#include <vector>

namespace heddle {
namespace {

TEST(HighsSelfTest, GivesNineWhereRelease114GaveFifteen) {
  const auto result = highs_self_test();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_DOUBLE_EQ(result->highs_value, 9);
  EXPECT_EQ(result->highs_version.substr(0, 2), "1.");
  EXPECT_NE(result->highs_version.substr(0, 4), "1.14");
}

TEST(CpSatSelfTest, FindsTheOrderOfSmithsRule) {
  const auto result = cp_sat_self_test();
  if (!result.ok() && result.error().code() == Code::kUnsupported) GTEST_SKIP() << result.error().to_string();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_DOUBLE_EQ(result->cp_sat_value, 29);
  EXPECT_FALSE(result->cp_sat_version.empty());
}

TEST(SolverSelfTest, BothSolversAnswerInOneProcessAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    const auto result = solver_self_test();
    if (!result.ok() && result.error().code() == Code::kUnsupported)
      GTEST_SKIP() << result.error().to_string();
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_DOUBLE_EQ(result->highs_value, result->highs_expected);
    EXPECT_DOUBLE_EQ(result->cp_sat_value, result->cp_sat_expected);
  }
}

TEST(SolverSelfTest, ThreadsMayRunItAtOnce) {
  std::vector<std::string> problems(4);
  std::vector<std::thread> threads;
  for (auto& problem : problems) {
    threads.emplace_back([&problem] {
      const auto result = solver_self_test();
      if (!result.ok() && result.error().code() != Code::kUnsupported) problem = result.error().to_string();
    });
  }
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
  const auto result = solver_self_test();
  if (!result.ok()) {
    EXPECT_EQ(result.error().code(), Code::kUnsupported) << result.error().to_string();
  }
  EXPECT_FLOAT_EQ(double_on_cpu(core), 6);
}

}  // namespace
}  // namespace heddle
