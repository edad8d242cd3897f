// Models whose inputs vary in shape: buckets, padding, requests at their own shape, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "machine/bucket_choice.h"
#include "protocol/request_sizes.h"
#include "varying_support.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace ow = onnx_writer;

// The mean of the values that the mask lets through.
std::string masked_model() {
  return ow::model({{ow::node("Mul", {"x", "mask"}, {"m"}, "through"),
                     ow::node("ReduceSum", {"m", "axes"}, {"sum"}, "sum"),
                     ow::node("ReduceSum", {"mask", "axes"}, {"count"}, "count"),
                     ow::node("Div", {"sum", "count"}, {"y"}, "mean")},
                    {ow::value("x", {-1, -1}), ow::value("mask", {-1, -1})},
                    {ow::value("y", {-1, 1})},
                    {ow::int_tensor("axes", {1}, {1})}});
}

TEST_F(Varying, PaddedAnswersAreThoseOfTheUnpaddedModel) {
  start(column_model(), buckets({"x=1,3,{4,8,16}"}), 4);
  ASSERT_EQ(smaller(), SmallerRuns::kPadded) << note();
  for (int64_t width = 1; width <= 16; ++width)
    for (int64_t rows : {1, 3}) {
      const Shape shape = {rows, 3, width};
      const auto x = some_numbers(shape, static_cast<float>(width));
      const auto answer = infer({{"x", shape, x}});
      ASSERT_TRUE(answer.ok()) << answer.error().to_string();
      ASSERT_EQ(answer->outputs.size(), 1U);
      EXPECT_EQ(answer->outputs[0].shape, shape);
      std::vector<float> expected;
      for (size_t i = 0; i < x.size(); ++i)
        expected.push_back(std::max(0.F, x[i] + static_cast<float>(i / static_cast<size_t>(width) % 3 + 1)));
      EXPECT_EQ(values_of(answer->outputs[0]), expected) << "width " << width << ", " << rows << " rows";
    }
}

TEST_F(Varying, ClientsSeeOpenDimensionsAndThePaddingIsCounted) {
  start(column_model(), buckets({"x=1,3,{4,8}"}), 2);
  const auto metadata = get("/v2/models/net");
  EXPECT_EQ(metadata["inputs"][0]["shape"], Json({-1, 3, -1}));
  EXPECT_EQ(metadata["outputs"][0]["shape"], Json({-1, 3, -1}));
  // 3 x 2 floats of 3 x 4, then 3 x 8 of 3 x 8: 24 + 96 bytes came, 48 + 96 ran.
  for (const int64_t width : {2, 8})
    ASSERT_TRUE(infer({{"x", {1, 3, width}, some_numbers({1, 3, width}, 0)}}).ok());
  const auto metrics = RawClient(server_->port()).ask("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("heddle_input_bytes_total{model=\"net\",kind=\"sent\"} 120\n"));
  EXPECT_THAT(metrics, HasSubstr("heddle_input_bytes_total{model=\"net\",kind=\"padding\"} 24\n"));
  EXPECT_THAT(metrics, HasSubstr("heddle_bucket_requests_total{model=\"net\",bucket=\"1x3x4\"} 1\n"));
  const auto model = get("/v2/status")["models"][0];
  EXPECT_NEAR(model["padding"].get<double>(), 24.0 / 144, 1e-12);
  ASSERT_EQ(model["buckets"].size(), 2U);
  EXPECT_EQ(model["buckets"][1]["name"], "1x3x8");
  EXPECT_EQ(model["buckets"][1]["requests"], 1);
  EXPECT_EQ(model["requests"]["in_time"], 2);
}

TEST_F(Varying, WherePaddingIsWrongRequestsRunAtTheirOwnShape) {
  start(softmax_model(), buckets({"x=1,3,{4,8,16}"}));
  ASSERT_EQ(smaller(), SmallerRuns::kAtOwn) << note();
  EXPECT_THAT(note(), HasSubstr("padding changes outputs by at most"));
  for (int64_t width = 1; width <= 16; ++width) {
    const Shape shape = {1, 3, width};
    const auto x = some_numbers(shape, 0);
    const auto answer = infer({{"x", shape, x}});
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    EXPECT_EQ(answer->outputs[0].shape, shape);
    EXPECT_THAT(values_of(answer->outputs[0]),
                testing::Pointwise(testing::FloatNear(1e-5F), softmax(x, static_cast<size_t>(width))));
  }
}

// The trial's integers are 0 to 3: a mask of 3 makes every output of softmax no number, padded or not.
TEST_F(Varying, ATrialWithoutNumbersIsRepeatedWithAMaskOfZerosAndOnes) {
  const auto model =
      ow::model({{ow::node("Cast", {"mask"}, {"m"}, "number", {ow::attribute_int("to", ow::kFloat)}),
                  ow::node("Sub", {"one", "m"}, {"hidden"}, "hidden"),
                  ow::node("Mul", {"hidden", "least"}, {"bias"}, "bias"),
                  ow::node("Add", {"x", "bias"}, {"score"}, "score"),
                  ow::node("Softmax", {"score"}, {"share"}, "softmax", {ow::attribute_int("axis", 1)}),
                  ow::node("Exp", {"x"}, {"e"}, "exp"), ow::node("ReduceSum", {"e", "axes"}, {"sum"}, "sum"),
                  ow::node("Add", {"share", "sum"}, {"y"}, "out")},
                 {ow::value("x", {-1, -1}), ow::value("mask", {-1, -1}, ow::kInt64)},
                 {ow::value("y", {-1, -1})},
                 {ow::float_tensor("one", {1}, {1}), ow::float_tensor("least", {1}, {-3.4e38F}),
                  ow::int_tensor("axes", {1}, {1})}});
  start(model, buckets({"x=1,{16,32}", "mask=1,{16,32}"}));
  EXPECT_EQ(smaller(), SmallerRuns::kAtOwn) << note();
  EXPECT_THAT(note(), HasSubstr("padding changes outputs by at most"));
}

TEST_F(Varying, APadValueCanMakePaddingRight) {
  auto varying = buckets({"x=1,3,{4,8}"});
  varying.pad["x"] = -1e30;  // whose exponential is 0
  start(softmax_model(), varying);
  ASSERT_EQ(smaller(), SmallerRuns::kPadded) << note();
  const auto x = some_numbers({1, 3, 5}, 0);
  const auto answer = infer({{"x", {1, 3, 5}, x}});
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(values_of(answer->outputs[0]), testing::Pointwise(testing::FloatNear(1e-6F), softmax(x, 5)));
}

TEST_F(Varying, PaddingCanBeForbidden) {
  auto varying = buckets({"x=1,3,{4,8}"});
  varying.padding_limit = -1;
  start(column_model(), varying, 4);
  EXPECT_EQ(smaller(), SmallerRuns::kAtOwn);
  const auto answer = infer({{"x", {1, 3, 1}, {-5, 0, 5}}});
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(values_of(answer->outputs[0]), ElementsAre(0, 2, 8));
}

TEST_F(Varying, SeveralInputsVaryTogether) {
  start(masked_model(), buckets({"x=1,{4,8}", "mask=1,{4,8}"}), 2);
  ASSERT_EQ(smaller(), SmallerRuns::kPadded) << note();
  const auto answer = infer({{"x", {1, 3}, {1, 2, 6}}, {"mask", {1, 3}, {1, 1, 0}}});
  ASSERT_TRUE(answer.ok()) << answer.error().to_string();
  EXPECT_EQ(answer->outputs[0].shape, (Shape{1, 1}));
  EXPECT_THAT(values_of(answer->outputs[0]), ElementsAre(1.5F));
  // Shapes that the model does not take, although each fits in the bucket.
  EXPECT_THAT(refusal({{"x", {1, 3}, {1, 2, 6}}, {"mask", {1, 2}, {1, 1}}}),
              HasSubstr("the model does not take it"));
}

// Each place of x attends to those that the mask lets through, as in BERT.
std::string attention_model() {
  return ow::model({{ow::node("Transpose", {"x"}, {"keys"}, "keys", {ow::attribute_ints("perm", {0, 2, 1})}),
                     ow::node("MatMul", {"x", "keys"}, {"scores"}, "scores"),
                     ow::node("Sub", {"one", "mask"}, {"hidden"}, "hidden"),
                     ow::node("Mul", {"hidden", "least"}, {"row"}, "row"),
                     ow::node("Unsqueeze", {"row", "axes"}, {"bias"}, "bias"),
                     ow::node("Add", {"scores", "bias"}, {"seen"}, "seen"),
                     ow::node("Softmax", {"seen"}, {"share"}, "share", {ow::attribute_int("axis", 2)}),
                     ow::node("MatMul", {"share", "x"}, {"y"}, "mix")},
                    {ow::value("x", {-1, -1, 4}), ow::value("mask", {-1, -1})},
                    {ow::value("y", {-1, -1, 4})},
                    {ow::float_tensor("one", {1}, {1}), ow::float_tensor("least", {1}, {-10000}),
                     ow::int_tensor("axes", {1}, {1})}});
}

std::vector<float> attention(const std::vector<float>& x, const std::vector<float>& mask) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < mask.size(); ++i) {
    std::vector<double> weights;
    double sum = 0;
    for (size_t j = 0; j < mask.size(); ++j) {
      weights.push_back(mask[j] *
                        std::exp(std::inner_product(x.begin() + static_cast<ptrdiff_t>(4 * i),
                                                    x.begin() + static_cast<ptrdiff_t>(4 * i + 4),
                                                    x.begin() + static_cast<ptrdiff_t>(4 * j), 0.0)));
      sum += weights.back();
    }
    for (size_t j = 0; j < mask.size(); ++j)
      for (size_t k = 0; k < 4; ++k) y[4 * i + k] += static_cast<float>(weights[j] / sum * x[4 * j + k]);
  }
  return y;
}

class VaryingAttention : public Varying {
 protected:
  void expect_right_answers() {
    for (int64_t width = 1; width <= 32; width += width < 6 ? 1 : 5) {
      auto x = some_numbers({1, width, 4}, 0);
      for (auto& v : x) v /= 8;
      std::vector<float> mask(static_cast<size_t>(width), 1);
      if (width > 2) mask[1] = 0;
      const auto answer = infer({{"x", {1, width, 4}, x}, {"mask", {1, width}, mask}});
      ASSERT_TRUE(answer.ok()) << answer.error().to_string();
      EXPECT_EQ(answer->outputs[0].shape, (Shape{1, width, 4}));
      EXPECT_THAT(values_of(answer->outputs[0]),
                  testing::Pointwise(testing::FloatNear(1e-5F), attention(x, mask)));
    }
  }
};

TEST_F(VaryingAttention, IsPaddedIfThePaddingIsMasked) {
  start(attention_model(), buckets({"x=1,{16,32},4", "mask=1,{16,32}"}), 4);
  EXPECT_EQ(smaller(), SmallerRuns::kPadded) << note();
  expect_right_answers();
}

TEST_F(VaryingAttention, RunsAtEachOwnSizeIfThePaddingIsSeen) {
  auto varying = buckets({"x=1,{16,32},4", "mask=1,{16,32}"});
  varying.pad["mask"] = 1;
  start(attention_model(), varying, 4);
  EXPECT_EQ(smaller(), SmallerRuns::kAtOwn) << note();
  expect_right_answers();
}

TEST_F(Varying, RefusesWhatNoBucketHolds) {
  start(column_model(), buckets({"x=1,3,{4,8}"}));
  EXPECT_EQ(refusal({{"x", {1, 3, 9}, some_numbers({1, 3, 9}, 0)}}),
            "model 'net': 'x' of shape 1x3x9 fits in none of its buckets: 1x3x4, 1x3x8; send smaller inputs, "
            "or serve "
            "it with a larger bucket");
  EXPECT_THAT(refusal({{"x", {1, 2, 4}, some_numbers({1, 2, 4}, 0)}}),
              HasSubstr("expected FP32 of shape 1x3x-1"));
  EXPECT_THAT(refusal({{"x", {1, 3, 0}, {}}}), HasSubstr("expected FP32 of shape 1x3x-1"));
  EXPECT_THAT(refusal({{"x", {1, 3}, {1, 2, 3}}}), HasSubstr("expected FP32 of shape 1x3x-1"));
  EXPECT_THAT(refusal({{"x", {1, 3, -4}, {}}}), HasSubstr("expected FP32 of shape 1x3x-1"));
  EXPECT_THAT(refusal({{"x", {1, 3, 4}, {1, 2}}}), HasSubstr("expected FP32 of shape 1x3x-1"));
}

TEST_F(Varying, BucketsAreChosenForTheExpectedRequests) {
  VaryingSettings varying;
  varying.requests = *parse_shape_trace("1,3,2 *50\n1,3,3\n1,3,60 *40\n1,3,61\n# none\n1,3,64\n");
  varying.most_buckets = 2;
  start(column_model(), varying, 1);
  const auto& served = *service_.models().front()->varying;
  ASSERT_LE(served.buckets.size(), 2U);
  EXPECT_EQ(served.buckets.back().name, "1x3x64");
  double shares = 0;
  for (const auto& b : served.buckets) shares += b.share;
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_TRUE(infer({{"x", {1, 3, 1}, {1, 2, 3}}}).ok());
}

TEST_F(Varying, StartRefusesWhatDoesNotFitTheModel) {
  EXPECT_THAT(try_start(column_model(), buckets({"q=1,3,{4,8}"})), HasSubstr("'q'"));
  EXPECT_THAT(try_start(column_model(), buckets({"x=1,4,{4,8}"})), HasSubstr("does not fit"));
  auto varying = buckets({"x=1,3,{4,8}"});
  varying.pad["q"] = 1;
  EXPECT_THAT(try_start(column_model(), varying), HasSubstr("a pad value names the input 'q'"));
  varying = buckets({"x=1,3,{4,8}"});
  varying.requests = *parse_shape_trace("1,3,9");
  EXPECT_THAT(try_start(column_model(), varying), HasSubstr("1x3x9 is expected, and no bucket holds it"));
  varying = {};
  varying.requests = *parse_shape_trace("x=1,3,9\nx=1,3,9,1");
  EXPECT_THAT(try_start(column_model(), varying), HasSubstr("numbers of dimensions"));
  varying.requests = *parse_shape_trace("x=2,3,9\nx=1,3,12");
  EXPECT_THAT(try_start(column_model(), varying), HasSubstr("in several dimensions apart from each other"));
}

TEST(ShapeTexts, BucketsTakeTheKthOfEachList) {
  const auto parsed = parse_buckets(std::vector<std::string>{"a=1,{8,4},{2,1}", "b={16,32}"});
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->shapes.size(), 2U);
  EXPECT_EQ(parsed->shapes[0], (NamedShapes{{"a", {1, 8, 2}}, {"b", {16}}}));
  EXPECT_EQ(parsed->shapes[1], (NamedShapes{{"a", {1, 4, 1}}, {"b", {32}}}));
  EXPECT_EQ(parsed->open, (NamedShapes{{"a", {1, -1, -1}}, {"b", {-1}}}));
  EXPECT_EQ(shapes_text(parsed->shapes[0]), "a=1x8x2 b=16");
}

TEST(ShapeTexts, MalformedBucketsAreRefused) {
  for (const char* text : {"x", "=1,{2,3}", "x=", "x=1,", "x=1,{2,3", "x=1,{}", "x=1,{0,3}", "x=1,{a}",
                           "x=1,2", "x=-1,{2}", "x={1,2}{3,4}", "x={1,2},{3,4,5}", "x={1,2}3"}) {
    const auto parsed = parse_buckets(std::vector<std::string>{text});
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("--buckets"));
  }
  EXPECT_FALSE(parse_buckets(std::vector<std::string>{"x={1,2}", "x={1,2}"}).ok());
}

TEST(ShapeTexts, TracesCountEqualRequests) {
  const auto trace = parse_shape_trace("1,48\n\n # a comment\n1,48 *2.5\n1,96\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().to_string();
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[0].count, 3.5);
  EXPECT_EQ((*trace)[1].shapes, (NamedShapes{{"", {1, 96}}}));
  for (const char* text :
       {"", "# none", "1,0", "1,x", "*3", "1,2 *0", "1,2 *3 *4", "1,2 3,4", "a=1 a=2", "=1", "a=1 2"}) {
    const auto bad = parse_shape_trace(text);
    EXPECT_FALSE(bad.ok()) << text;
  }
  EXPECT_THAT(parse_shape_trace("1,2\n1,nan\n").error().message(), HasSubstr("line 2"));
}

TEST(BucketChoice, MeasuresFewShapesAndChoosesTheLeastExpectedTime) {
  ModelSource source;
  std::string text;
  for (int width = 1; width <= 40; ++width)
    text += "x=1," + std::to_string(width) + (width == 10 ? " *100\n" : "\n");
  source.settings.varying.requests = *parse_shape_trace(text);
  auto all = known_buckets(source);
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  ASSERT_EQ(all->shapes.size(), 40U);
  EXPECT_EQ(all->padding, 0);
  int measured = 0;
  const auto chosen = choose_by_time(*all, 2, [&measured](const NamedShapes& shapes) -> Result<double> {
    ++measured;
    return elements_of(shapes);
  });
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(measured, 5);
  ASSERT_EQ(chosen->shapes.size(), 2U);
  EXPECT_EQ(chosen->shapes[0].at("x"), (Shape{1, 10}));  // where most requests are
  EXPECT_EQ(chosen->shapes[1].at("x"), (Shape{1, 40}));
  EXPECT_NEAR(chosen->shares[0], 109.0 / 139, 1e-12);
  EXPECT_GT(chosen->padding, 0);
}

TEST(BucketChoice, UnnamedAndNamedRequestsOfOneShapeAreOneBucket) {
  const TestFolder folder;
  ModelSource source;
  source.path = folder.write("net.onnx", column_model());
  source.settings.varying.requests = *parse_shape_trace("1,3,8 *3\nx=1,3,8 *2\nx=1,3,4\n");
  const auto all = known_buckets(source);
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  ASSERT_EQ(all->shapes.size(), 2U);
  EXPECT_NEAR(all->shares[1], 5.0 / 6, 1e-12);
}

TEST(BucketChoice, TooManyShapesAreRefusedAtOnce) {
  ModelSource source;
  std::string text;
  for (int width = 1; width <= 2049; ++width) text += "x=1," + std::to_string(width) + "\n";
  source.settings.varying.requests = *parse_shape_trace(text);
  const auto all = known_buckets(source);
  ASSERT_FALSE(all.ok());
  EXPECT_THAT(all.error().message(), HasSubstr("at most 2048 shapes, and the requests have 2049"));
  EXPECT_THAT(all.error().message(), HasSubstr("round their sizes up"));
}

TEST(BucketChoice, RequestsNameInputsThatHaveBuckets) {
  const TestFolder folder;
  ModelSource source;
  source.path = folder.write("net.onnx", masked_model());
  auto& varying = source.settings.varying;
  varying.buckets = *parse_buckets(std::vector<std::string>{"x=1,{4,8}"});
  const auto error = [&](const std::string& trace) {
    varying.requests = *parse_shape_trace(trace);
    const auto known = known_buckets(source);
    return known.ok() ? "" : known.error().message();
  };
  EXPECT_EQ(error("x=1,3"), "");
  EXPECT_THAT(error("x=1,3 mask=1,3"), HasSubstr("the input 'mask', for which no buckets are given"));
  EXPECT_THAT(error("y=1,3"), HasSubstr("the input 'y', which the model does not have"));
  EXPECT_THAT(error("1,3"), HasSubstr("the model's inputs are 'x' and 'mask'; write NAME="));
  source.settings.state = {{"mask", "y"}};  // which no request has
  EXPECT_EQ(error("1,3"), "");
  source.settings.state.clear();
  source.settings.values["mask"] = {1};
  EXPECT_EQ(error("1,3"), "");
  source.path = "net.xml";  // whose inputs only the import can tell
  EXPECT_EQ(error("1,3"), "");
  EXPECT_THAT(error("mask=1,3"), HasSubstr("for which no buckets are given"));
}

TEST(BucketChoice, NamesFitInAFleet) {
  NamedShapes few = {{"x", {1, 3, 48, 160}}}, many;
  for (int i = 0; i < 3; ++i)
    for (const char* part : {".key", ".value"})
      many["past_key_values." + std::to_string(i) + part] = {1, 12, 128, 64};
  EXPECT_THAT(bucket_model_names("net", {few}), ElementsAre("net@1x3x48x160"));
  auto more = many;
  more.begin()->second.back() = 128;
  EXPECT_THAT(bucket_model_names("net", {few, many, more}),
              ElementsAre("net@1x3x48x160", "net@bucket-2", "net@bucket-3"));
}

// The names of ONNX's inputs are as long as their exporters make them.
TEST_F(Varying, ServesModelsWhoseInputsHaveLongNames) {
  const std::string x = "past_key_values.0.key" + std::string(100, 'x'), y = std::string(100, 'y');
  const auto model = ow::model({{ow::node("Add", {x, y}, {"z"}, "add")},
                                {ow::value(x, {1, -1}), ow::value(y, {1, -1})},
                                {ow::value("z", {1, -1})},
                                {}});
  start(model, buckets({x + "=1,{4,8}", y + "=1,{4,8}"}));
  const auto answer = infer({{x, {1, 3}, {1, 2, 3}}, {y, {1, 3}, {1, 1, 1}}});
  ASSERT_TRUE(answer.ok()) << answer.error().to_string();
  EXPECT_THAT(values_of(answer->outputs[0]), ElementsAre(2, 3, 4));
}

TEST(RequestSizesOf, ModelsThatTakeOnlyTheirBuckets) {
  ServedModel model;
  model.name = "net";
  model.inputs = {{.name = "x", .dtype = DType::kF32, .row = {8}, .row_bytes = 32, .open = {-1}}};
  auto varying = std::make_shared<VaryingShapes>();
  varying->buckets = {{.name = "4", .inputs = {{4}}, .outputs = {}},
                      {.name = "8", .inputs = {{8}}, .outputs = {}}};
  varying->refusal = "it cannot";
  model.varying = varying;
  EXPECT_EQ(RequestSizes::of_varying(model, {{8}})->bucket(), 1U);
  EXPECT_EQ(RequestSizes::of_varying(model, {{4}})->bucket(), 0U);
  const auto between = RequestSizes::of_varying(model, {{5}});
  ASSERT_FALSE(between.ok());
  EXPECT_EQ(between.error().message(), "model 'net': 'x' of shape 5 is none of its buckets: 4, 8; it cannot");
}

TEST(RequestSizesOf, WhatTheEngineCannotTellAheadIsTheBuckets) {
  ServedModel model;
  model.name = "net";
  model.inputs = {{.name = "x", .dtype = DType::kF32, .row = {1, 8}, .row_bytes = 32, .open = {1, -1}}};
  model.outputs = {{.name = "y", .dtype = DType::kF32, .row = {1, 4, 3}, .row_bytes = 48}};
  auto varying = std::make_shared<VaryingShapes>();
  varying->buckets = {{.name = "8", .inputs = {{1, 8}}, .outputs = {{1, 4, 3}}}};
  varying->smaller = SmallerRuns::kAtOwn;
  // The rows, as of a reshape by computed sizes, are open; the steps follow from the width.
  varying->output_rows = [](std::span<const Shape> inputs) -> Result<std::vector<Shape>> {
    return std::vector<Shape>{{-1, inputs[0][1] / 2, 3}};
  };
  model.varying = varying;
  const auto sizes = RequestSizes::of_varying(model, {{1, 6}});
  ASSERT_TRUE(sizes.ok()) << sizes.error().to_string();
  EXPECT_EQ(sizes->run_output(0), (Shape{1, 3, 3}));
}

}  // namespace
}  // namespace heddle
