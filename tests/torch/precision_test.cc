// float32 models on accelerators that compute in a narrower type: what is rounded, and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <openvino/op/ops.hpp>

#include "backends/torch/step_types.h"
#include "torch/op_models.h"

namespace heddle {
namespace {

using ov::element::f32;
using ov::element::i64;
using torch_backend::computes_narrow;
using torch_backend::FloatInput;
using Parameter = ov::op::v0::Parameter;
using Constant = ov::op::v0::Constant;

Device accelerator(Precision precision) {
  Device device = torch_cpu();
  device.kind = DeviceKind::kGpu;
  device.cores.clear();
  device.precision = precision;
  return device;
}

ov::Tensor floats(const std::vector<float>& values) {
  ov::Tensor result(f32, {1, values.size()});
  std::copy(values.begin(), values.end(), result.data<float>());
  return result;
}

std::vector<float> run(const ov::Output<ov::Node>& output, const std::shared_ptr<Parameter>& x,
                       const ov::Tensor& input, Precision precision) {
  const auto made =
      run_on_torch(std::make_shared<ov::Model>(ov::OutputVector{output}, ov::ParameterVector{x}), {input},
                   accelerator(precision));
  if (made.empty()) return {};
  return {made[0].data<float>(), made[0].data<float>() + made[0].get_size()};
}

TEST(TorchPrecision, EachOpComputesInTheTypeOfItsKindOrOfItsInputs) {
  const auto narrow = [](const char* type, std::vector<FloatInput> inputs, bool squares = false) {
    return computes_narrow(type, inputs, squares);
  };
  using enum FloatInput;
  EXPECT_TRUE(narrow("MatMul", {kWide, kConstant}));
  EXPECT_TRUE(narrow("Softmax", {kWide}));
  EXPECT_FALSE(narrow("Power", {kNarrow, kConstant}));
  EXPECT_FALSE(narrow("Loop", {kNone, kNarrow}));
  EXPECT_TRUE(narrow("Multiply", {kNarrow, kNarrow}));
  EXPECT_FALSE(narrow("Multiply", {kNarrow, kNarrow}, true)) << "a square";
  EXPECT_TRUE(narrow("MatMul", {kNarrow, kConstant}, true));
  EXPECT_TRUE(narrow("Add", {kNarrow, kWide}));
  EXPECT_FALSE(narrow("Add", {kWide, kConstant}));
  EXPECT_TRUE(narrow("Gather", {kConstant, kNone, kNone})) << "rows of a table";
  EXPECT_FALSE(narrow("Convert", {kNone})) << "numbers made from integers";
}

TEST(TorchPrecision, InputsWeightsAndProductsAreRounded) {
  const auto x = std::make_shared<Parameter>(f32, ov::Shape{1, 2});
  // 1 + 2^-8 is half-way between two numbers of bf16, and one of fp16.
  const auto w = Constant::create(f32, {2, 1}, std::vector<float>{1 + 0x1p-8F, 1});
  const auto product = std::make_shared<ov::op::v0::MatMul>(x, w);
  const ov::Tensor input = floats({1, 0x1p-8F});
  EXPECT_EQ(run(product, x, input, Precision::kF32), std::vector<float>{1 + 0x1p-7F});
  EXPECT_EQ(run(product, x, input, Precision::kFp16), std::vector<float>{1 + 0x1p-7F});
  // The weight is rounded to 1, and the sum 1 + 2^-8 as well.
  EXPECT_EQ(run(product, x, input, Precision::kBf16), std::vector<float>{1});
}

// A variance as exported normalisations compute it: its squares leave fp16's range, its root does not.
TEST(TorchPrecision, SquaresOfLargeNumbersStayFinite) {
  const auto x = std::make_shared<Parameter>(f32, ov::Shape{1, 4});
  const auto square =
      std::make_shared<ov::op::v1::Power>(x, Constant::create(f32, {}, std::vector<float>{2}));
  const auto mean = std::make_shared<ov::op::v1::ReduceMean>(
      square, Constant::create(i64, {1}, std::vector<int64_t>{1}), true);
  const auto root = std::make_shared<ov::op::v0::Sqrt>(mean);
  const auto scaled = std::make_shared<ov::op::v1::Divide>(x, root);
  const auto made = run(scaled, x, floats({3000, -3000, 3000, 3000}), Precision::kFp16);
  EXPECT_EQ(made, (std::vector<float>{1, -1, 1, 1}));
}

// As attention masks are exported: beyond the type's range, and multiplied by 0 where nothing is masked.
TEST(TorchPrecision, LargeNumbersOfMasksStayNumbers) {
  const auto x = std::make_shared<Parameter>(f32, ov::Shape{1, 2});
  const auto w = Constant::create(f32, {2, 2}, std::vector<float>{0, 0, 0, 0});
  const auto scores = std::make_shared<ov::op::v0::MatMul>(x, w);
  const auto masked = std::make_shared<ov::op::v1::Multiply>(
      x, Constant::create(f32, {}, std::vector<float>{-3.4028234e38F}));
  const auto made =
      std::make_shared<ov::op::v8::Softmax>(std::make_shared<ov::op::v1::Add>(scores, masked), 1);
  for (const Precision precision : {Precision::kBf16, Precision::kFp16})
    EXPECT_EQ(run(made, x, floats({0, 1}), precision), (std::vector<float>{1, 0}));
}

// Scales and variances beyond fp16's range, as trained models have them.
TEST(TorchPrecision, ConstantsBeyondTheTypesRangeStayInFloat32) {
  const auto x = std::make_shared<Parameter>(f32, ov::Shape{1, 2});
  const auto up =
      std::make_shared<ov::op::v1::Multiply>(x, Constant::create(f32, {}, std::vector<float>{1e6F}));
  const auto down =
      std::make_shared<ov::op::v1::Multiply>(up, Constant::create(f32, {}, std::vector<float>{1e-6F}));
  EXPECT_THAT(run(down, x, floats({1, 0.5F}), Precision::kFp16),
              testing::ElementsAre(testing::FloatNear(1, 1e-3F), testing::FloatNear(0.5F, 1e-3F)));
  const auto of = [](float value) { return Constant::create(f32, {2}, std::vector<float>{value, value}); };
  const auto normal =
      std::make_shared<ov::op::v5::BatchNormInference>(x, of(1e3F), of(0), of(0), of(1e6F), 1e-5);
  EXPECT_THAT(run(normal, x, floats({1, 0.5F}), Precision::kFp16),
              testing::ElementsAre(testing::FloatNear(1, 1e-3F), testing::FloatNear(0.5F, 1e-3F)));
}

// 1001 is no number of bf16.
TEST(TorchPrecision, NumbersMadeFromIntegersAreNotRounded) {
  const auto x = std::make_shared<Parameter>(f32, ov::Shape{1, 1});
  const auto position = std::make_shared<Parameter>(i64, ov::Shape{1, 1});
  const auto as_float = std::make_shared<ov::op::v0::Convert>(position, f32);
  const auto twice = std::make_shared<ov::op::v1::Add>(as_float, as_float);
  const auto model = std::make_shared<ov::Model>(
      ov::OutputVector{twice, std::make_shared<ov::op::v0::Relu>(x)}, ov::ParameterVector{x, position});
  ov::Tensor number(i64, {1, 1});
  number.data<int64_t>()[0] = 1001;
  const auto made = run_on_torch(model, {floats({1001}), number}, accelerator(Precision::kBf16));
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].data<float>()[0], 2002);
  EXPECT_EQ(made[1].data<float>()[0], 1000) << "inputs are";
}

TEST(TorchPrecision, DevicesSayWhichTypesTheyHave) {
  Backend& torch = *find_backend("torch");
  EXPECT_EQ(torch.precisions(torch_cpu()).value(), std::vector{Precision::kF32});
  const auto narrow = torch.precisions(accelerator(Precision::kF32));
  EXPECT_EQ(narrow.value(), (std::vector{Precision::kF32, Precision::kBf16, Precision::kFp16}));
  EXPECT_EQ(torch.border_type(accelerator(Precision::kBf16)), DType::kBF16);
  EXPECT_EQ(torch.border_type(accelerator(Precision::kF32)), DType::kF32);
  const auto refused = open_device(accelerator(Precision::kTf32));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().to_string(), testing::HasSubstr("it has 'f32', 'bf16' and 'fp16'"));
}

}  // namespace
}  // namespace heddle
