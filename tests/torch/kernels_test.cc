// Ops of which the node cases have few or none: what libtorch computes beside what OpenVINO does, or beside
// numbers worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <openvino/op/ops.hpp>

#include "torch/op_models.h"

namespace heddle {
namespace {

using ov::element::f32;
using ov::element::i32;
using ov::element::i64;
using ov::element::u64;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Parameter = ov::op::v0::Parameter;
using Constant = ov::op::v0::Constant;

template <class T>
ov::Tensor tensor(const ov::element::Type& type, const ov::Shape& shape, const std::vector<T>& values) {
  ov::Tensor result(type, shape);
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}

// -1 to 1, no two alike.
ov::Tensor numbers(const ov::Shape& shape) {
  ov::Tensor result(f32, shape);
  for (size_t i = 0; i < result.get_size(); ++i)
    result.data<float>()[i] = std::sin(static_cast<float>(i) * 1.7F + 0.3F);
  return result;
}

std::shared_ptr<Parameter> input(const ov::element::Type& type, const ov::Shape& shape) {
  return std::make_shared<Parameter>(type, shape);
}

std::vector<float> through(const ov::element::Type& type, const std::vector<float>& values) {
  const auto x = input(f32, {values.size()});
  const auto narrow = std::make_shared<ov::op::v0::Convert>(x, type);
  const auto back = std::make_shared<ov::op::v0::Convert>(narrow, f32);
  const auto made = run_on_torch(std::make_shared<ov::Model>(ov::OutputVector{back}, ov::ParameterVector{x}),
                                 {tensor<float>(f32, {values.size()}, values)});
  if (made.empty()) return {};
  return {made[0].data<float>(), made[0].data<float>() + made[0].get_size()};
}

// Numbers by ONNX's tables of float8 and float4; halves go to the even code, the rest to the nearest.
TEST(TorchNarrowTypes, FloatsAreRoundedToTheNearestAndHeldAtTheLargest) {
  const float inf = std::numeric_limits<float>::infinity();
  // e4m3: steps of 1/8 from 1 on; the least is 2^-9; the largest 448.
  EXPECT_THAT(through(ov::element::f8e4m3, {1.0625F, 1.1875F, 0x1p-10F, 0x1.8p-9F, 464, -inf, 0.3F}),
              ElementsAre(1, 1.25F, 0, 0x1p-8F, 448, -448, 0.3125F));
  // e5m2: steps of 1/4 from 1 on; the least is 2^-16; the largest 57344.
  EXPECT_THAT(through(ov::element::f8e5m2, {1.125F, 1.375F, 0x1p-17F, 1e9F, -1.6F}),
              ElementsAre(1, 1.5F, 0, 57344, -1.5F));
  // e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
  EXPECT_THAT(through(ov::element::f4e2m1, {0.25F, 0.75F, 2.5F, 3.5F, 5, -5.1F, 99}),
              ElementsAre(0, 1, 2, 4, 4, -6, 6));
  // e8m0: powers of two alone, the next one up.
  EXPECT_THAT(through(ov::element::f8e8m0, {1, 1.1F, 2, 3, 0x1p-126F}), ElementsAre(1, 2, 2, 4, 0x1p-126F));
  EXPECT_TRUE(std::isnan(through(ov::element::f8e4m3, {std::nanf("")})[0]));
  EXPECT_TRUE(std::isnan(through(ov::element::f8e8m0, {-1})[0]));
}

// Each code is a number that is its own neighbour; two codes of 4 bits share a byte.
TEST(TorchNarrowTypes, EveryCodeSurvives) {
  for (const auto& type : {ov::element::f8e4m3, ov::element::f8e5m2, ov::element::f8e8m0, ov::element::f4e2m1,
                           ov::element::i4, ov::element::u4}) {
    const size_t count = size_t{1} << type.bitwidth();
    ov::Tensor codes(type, {count});
    auto* bytes = static_cast<uint8_t*>(codes.data());
    for (size_t i = 0; i < codes.get_byte_size(); ++i)
      bytes[i] = static_cast<uint8_t>(type.bitwidth() == 8 ? i : 2 * i | (2 * i + 1) << 4);
    const auto x = input(type, {count});
    const auto wide = std::make_shared<ov::op::v0::Convert>(x, f32);
    const auto back = std::make_shared<ov::op::v0::Convert>(wide, type);
    const auto made = run_on_torch(
        std::make_shared<ov::Model>(ov::OutputVector{wide, back}, ov::ParameterVector{x}), {codes});
    ASSERT_EQ(made.size(), 2U);
    for (size_t i = 0; i < codes.get_byte_size(); ++i) {
      // What is no number has several codes, and infinity becomes the largest one.
      if (type.bitwidth() == 8 && !std::isfinite(made[0].data<float>()[i])) continue;
      EXPECT_EQ(static_cast<const uint8_t*>(made[1].data())[i], bytes[i]) << type << ", byte " << i;
    }
  }
}

TEST(TorchUnsigned64, NumbersBeyondTheSignedOnes) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  const auto a = input(u64, {4}), b = input(u64, {4});
  const ov::OutputVector results = {
      std::make_shared<ov::op::v1::Divide>(a, b), std::make_shared<ov::op::v1::FloorMod>(a, b),
      std::make_shared<ov::op::v1::Maximum>(a, b), std::make_shared<ov::op::v1::Power>(a, b)};
  const auto made = run_on_torch(std::make_shared<ov::Model>(results, ov::ParameterVector{a, b}),
                                 {tensor<uint64_t>(u64, {4}, {kTop + 7, ~uint64_t{0}, 9, 5}),
                                  tensor<uint64_t>(u64, {4}, {3, kTop, 0, kTop + 1})});
  ASSERT_EQ(made.size(), 4U);
  const auto list = [&](size_t i) {
    return std::vector<uint64_t>(made[i].data<uint64_t>(), made[i].data<uint64_t>() + 4);
  };
  EXPECT_THAT(list(0), ElementsAre((kTop + 7) / 3, 1, 0, 0));
  EXPECT_THAT(list(1), ElementsAre((kTop + 7) % 3, kTop - 1, 0, 5));
  EXPECT_THAT(list(2), ElementsAre(kTop + 7, ~uint64_t{0}, 9, kTop + 1));
  EXPECT_EQ(list(3)[0], kTop + 343);  // (2^63 + 7)^3 is 7^3 + 3 * 7^2 * 2^63 and multiples of 2^64
}

// 255 is not -1.
TEST(TorchIntegers, OfAByteAreDividedByTheLargest) {
  const auto u8 = ov::element::u8;
  const auto a = input(u8, {4}), b = input(u8, {4});
  const ov::OutputVector ops{std::make_shared<ov::op::v1::Divide>(a, b),
                             std::make_shared<ov::op::v1::FloorMod>(a, b),
                             std::make_shared<ov::op::v1::Mod>(a, b)};
  const auto made = run_on_torch(
      std::make_shared<ov::Model>(ops, ov::ParameterVector{a, b}),
      {tensor<uint8_t>(u8, {4}, {200, 255, 7, 255}), tensor<uint8_t>(u8, {4}, {255, 255, 255, 2})});
  ASSERT_EQ(made.size(), 3U);
  const auto numbers_of = [](const ov::Tensor& t) {
    return std::vector<int>(t.data<uint8_t>(), t.data<uint8_t>() + 4);
  };
  EXPECT_THAT(numbers_of(made[0]), ElementsAre(0, 1, 0, 127));
  EXPECT_THAT(numbers_of(made[1]), ElementsAre(200, 0, 7, 1));
  EXPECT_THAT(numbers_of(made[2]), ElementsAre(200, 0, 7, 1));
}

TEST(TorchUnsigned64, ToAndFromFloatingPoint) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  const auto x = input(u64, {3});
  const auto wide = std::make_shared<ov::op::v0::Convert>(x, ov::element::f64);
  const auto back = std::make_shared<ov::op::v0::Convert>(wide, u64);
  const auto made =
      run_on_torch(std::make_shared<ov::Model>(ov::OutputVector{wide, back}, ov::ParameterVector{x}),
                   {tensor<uint64_t>(u64, {3}, {5, kTop, kTop + 4096})});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].data<double>()[1], 9223372036854775808.0);
  EXPECT_EQ(made[1].data<uint64_t>()[2], kTop + 4096);
}

// Beyond what a double holds: (2^31 - 1) (2^31 - 1) = 1 modulo 2^32, and so on.
TEST(TorchConvolution, IntegersOf32BitsWrapAround) {
  const auto x = input(i32, {1, 1, 3}), w = input(i32, {1, 1, 2});
  const auto y = std::make_shared<ov::op::v1::Convolution>(x, w, ov::Strides{1}, ov::CoordinateDiff{0},
                                                           ov::CoordinateDiff{0}, ov::Strides{1});
  const int32_t most = std::numeric_limits<int32_t>::max();
  const auto made = run_on_torch(
      std::make_shared<ov::Model>(ov::OutputVector{y}, ov::ParameterVector{x, w}),
      {tensor<int32_t>(i32, {1, 1, 3}, {most, -3, 70000}), tensor<int32_t>(i32, {1, 1, 2}, {most, 70001})});
  ASSERT_EQ(made.size(), 1U);
  const auto wrapped = [](int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); };
  EXPECT_EQ(made[0].data<int32_t>()[0], wrapped(1 - int64_t{3} * 70001));
  EXPECT_EQ(made[0].data<int32_t>()[1], wrapped(-3 * int64_t{most} + int64_t{70000} * 70001));
}

TEST(TorchGather, IndicesOutsideTheAxisGiveZeros) {
  const auto x = input(f32, {2, 3, 2}), flat = input(i32, {4}), rows = input(i32, {2, 2});
  const auto axis = Constant::create(i64, {}, {1});
  const ov::OutputVector results = {std::make_shared<ov::op::v8::Gather>(x, flat, axis),
                                    std::make_shared<ov::op::v8::Gather>(x, rows, axis, 1)};
  const auto made =
      run_on_torch(std::make_shared<ov::Model>(results, ov::ParameterVector{x, flat, rows}),
                   {tensor<float>(f32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
                    tensor<int32_t>(i32, {4}, {2, 3, -1, -4}), tensor<int32_t>(i32, {2, 2}, {0, 7, 1, 2})});
  ASSERT_EQ(made.size(), 2U);
  const auto list = [&](size_t i) {
    return std::vector<float>(made[i].data<float>(), made[i].data<float>() + made[i].get_size());
  };
  EXPECT_THAT(list(0), ElementsAre(5, 6, 0, 0, 5, 6, 0, 0, 11, 12, 0, 0, 11, 12, 0, 0));
  EXPECT_THAT(list(1), ElementsAre(1, 2, 0, 0, 9, 10, 11, 12));
}

TEST(TorchRegions, BothModesAndAlignmentsAreOpenVinos) {
  using Roi = ov::op::v9::ROIAlign;
  const auto boxes = tensor<float>(f32, {3, 4}, {0, 0, 9, 6, 1.3F, 2.1F, 4.9F, 5.2F, -2, -3, 30, 20});
  const auto numbers_of = tensor<int32_t>(i32, {3}, {0, 1, 0});
  for (const auto mode : {Roi::PoolingMode::AVG, Roi::PoolingMode::MAX}) {
    for (const auto aligned :
         {Roi::AlignedMode::ASYMMETRIC, Roi::AlignedMode::HALF_PIXEL, Roi::AlignedMode::HALF_PIXEL_FOR_NN}) {
      for (const int samples : {0, 2}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + " " +
                     std::to_string(static_cast<int>(aligned)) + " " + std::to_string(samples));
        const auto x = input(f32, {2, 3, 7, 10}), r = input(f32, {3, 4}), n = input(i32, {3});
        const auto y = std::make_shared<Roi>(x, r, n, 2, 3, samples, 0.75F, mode, aligned);
        expect_as_openvino(std::make_shared<ov::Model>(ov::OutputVector{y}, ov::ParameterVector{x, r, n}),
                           {numbers({2, 3, 7, 10}), boxes, numbers_of}, 1e-4, 1e-5);
      }
    }
  }
}

TEST(TorchFourier, RealTransformsAreUndone) {
  for (const size_t n : {8U, 9U}) {
    const auto x = input(f32, {3, n});
    const auto axes = Constant::create(i64, {2}, {0, 1});
    const auto size = Constant::create(i64, {2}, {int64_t{3}, static_cast<int64_t>(n)});
    const auto there = std::make_shared<ov::op::v9::RDFT>(x, axes);
    const auto back = std::make_shared<ov::op::v9::IRDFT>(there, axes, size);
    expect_as_openvino(std::make_shared<ov::Model>(ov::OutputVector{there, back}, ov::ParameterVector{x}),
                       {numbers({3, n})}, 1e-4, 1e-4);
  }
}

std::shared_ptr<ov::Model> branches() {
  const auto which = input(ov::element::boolean, {}), x = input(f32, {2, 3});
  const auto a = input(f32, {2, 3}), b = input(f32, {2, 3});
  const auto twice = std::make_shared<ov::op::v1::Add>(a, a);
  const auto root = std::make_shared<ov::op::v0::Exp>(b);
  const auto yes = std::make_shared<ov::op::v0::Result>(twice),
             no = std::make_shared<ov::op::v0::Result>(root);
  const auto op = std::make_shared<ov::op::v8::If>(which);
  op->set_then_body(std::make_shared<ov::Model>(ov::ResultVector{yes}, ov::ParameterVector{a}));
  op->set_else_body(std::make_shared<ov::Model>(ov::ResultVector{no}, ov::ParameterVector{b}));
  op->set_input(x, a, b);
  const auto y = op->set_output(yes, no);
  return std::make_shared<ov::Model>(ov::OutputVector{y}, ov::ParameterVector{which, x});
}

TEST(TorchControl, ABranchIsTakenByItsCondition) {
  for (const bool which : {true, false}) {
    ov::Tensor condition(ov::element::boolean, {});
    *static_cast<uint8_t*>(condition.data()) = which ? 1 : 0;
    expect_as_openvino(branches(), {condition, numbers({2, 3})});
  }
}

// A running product over the rows, from the last to the first, each multiplied by the number of its iteration
// where `counted`: all partial products and the last.
std::shared_ptr<ov::Model> looped(const ov::Output<ov::Node>& trips, const ov::ParameterVector& more,
                                  bool joined) {
  const auto x = input(f32, {4, 2}), start = input(f32, {1, 2});
  const auto number = input(i64, {}), row = input(f32, {1, 2}), product = input(f32, {1, 2});
  const auto next = std::make_shared<ov::op::v1::Add>(std::make_shared<ov::op::v1::Multiply>(row, product),
                                                      std::make_shared<ov::op::v0::Convert>(number, f32));
  const auto goes_on = Constant::create(ov::element::boolean, {}, {true});
  const auto condition = std::make_shared<ov::op::v0::Result>(goes_on),
             made = std::make_shared<ov::op::v0::Result>(next);
  const auto op =
      std::make_shared<ov::op::v5::Loop>(trips, Constant::create(ov::element::boolean, {}, {true}));
  op->set_function(std::make_shared<ov::Model>(ov::ResultVector{condition, made},
                                               ov::ParameterVector{number, row, product}));
  op->set_special_body_ports({0, 0});
  if (joined)
    op->set_sliced_input(row, x, -1, -1, 1, 0, 0);
  else
    op->set_invariant_input(row, start);
  op->set_merged_input(product, start, made);
  ov::OutputVector results = {op->get_iter_value(made, -1)};
  if (joined) results.push_back(op->get_concatenated_slices(made, 0, 1, 1, -1, 0));
  ov::ParameterVector parameters = {x, start};
  parameters.insert(parameters.end(), more.begin(), more.end());
  return std::make_shared<ov::Model>(results, parameters);
}

TEST(TorchControl, ALoopGivesItsLastAndAllItsResults) {
  expect_as_openvino(looped(Constant::create(i64, {}, {4}), {}, true), {numbers({4, 2}), numbers({1, 2})});
}

TEST(TorchControl, ALoopsLengthMayBeComputedWhereOnlyTheLastResultIsWanted) {
  const auto trips = input(i64, {});
  const auto model = looped(trips, {trips}, false);
  for (const int64_t count : {0, 3})
    expect_as_openvino(model, {numbers({4, 2}), numbers({1, 2}), tensor<int64_t>(i64, {}, {count})});
}

TEST(TorchControl, AnOutputThatNoIterationMakesIsRefused) {
  const auto x = input(f32, {1, 2}), row = input(f32, {1, 2}), number = input(i64, {});
  const auto condition =
      std::make_shared<ov::op::v0::Result>(Constant::create(ov::element::boolean, {}, {true}));
  const auto made = std::make_shared<ov::op::v0::Result>(std::make_shared<ov::op::v0::Abs>(row));
  const auto op = std::make_shared<ov::op::v5::Loop>(Constant::create(i64, {}, {0}),
                                                     Constant::create(ov::element::boolean, {}, {true}));
  op->set_function(
      std::make_shared<ov::Model>(ov::ResultVector{condition, made}, ov::ParameterVector{number, row}));
  op->set_special_body_ports({0, 0});
  op->set_invariant_input(row, x);
  const auto y = op->get_iter_value(made, -1);
  EXPECT_THAT(refusal_of(std::make_shared<ov::Model>(ov::OutputVector{y}, ov::ParameterVector{x})),
              HasSubstr("number of iterations"));
}

TEST(TorchUnique, MoreThanOneElementIsRefused) {
  const auto x = input(f32, {1});
  const auto one = std::make_shared<ov::op::v10::Unique>(x);
  EXPECT_EQ(refusal_of(std::make_shared<ov::Model>(one->outputs(), ov::ParameterVector{x})), "");
}

TEST(TorchRandom, RandomNumbersAreRefused) {
  const auto x = input(f32, {2});
  const auto noise = std::make_shared<ov::op::v8::RandomUniform>(Constant::create(i64, {1}, {2}),
                                                                 Constant::create(f32, {}, {0}),
                                                                 Constant::create(f32, {}, {1}), f32, 1, 2);
  const auto sum = std::make_shared<ov::op::v1::Add>(x, noise);
  EXPECT_THAT(refusal_of(std::make_shared<ov::Model>(ov::OutputVector{sum}, ov::ParameterVector{x})),
              HasSubstr("(RandomUniform) cannot run on libtorch"));
}

}  // namespace
}  // namespace heddle
