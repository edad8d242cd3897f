// Errors of outputs against float32, and the decisions that they change.
#include "heddle/runtime/output_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heddle {
namespace {

using testing::HasSubstr;

TensorValue numbers(const std::vector<float>& values, Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  TensorValue value = make_tensor(DType::kF32, shape).value();
  std::copy(values.begin(), values.end(), reinterpret_cast<float*>(value.data.get()));
  return value;
}

OutputError error_of(const std::vector<float>& actual, const std::vector<float>& expected) {
  const TensorValue a[] = {numbers(actual)}, b[] = {numbers(expected)};
  return output_error(a, b);
}

TEST(OutputError, IsAPartOfTheOutputsRange) {
  const OutputError none = error_of({1, 2, 5}, {1, 2, 5});
  EXPECT_EQ(none.largest(), 0);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.cosine(), 1);
  const OutputError some = error_of({1, 2.4F, 5}, {1, 2, 5});
  EXPECT_NEAR(some.largest(), 0.1, 1e-6);
  EXPECT_NEAR(some.mean(), 0.1 / 3, 1e-6);
  EXPECT_GT(some.cosine(), 0.99);
  EXPECT_LT(some.cosine(), 1);
  // A constant output has no range: its size counts.
  EXPECT_NEAR(error_of({4, 4.4F}, {4, 4}).largest(), 0.1, 1e-6);
}

TEST(OutputError, NumbersThatAreNotFiniteCount) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of({1, nan, inf}, {1, nan, inf}).largest(), 0);
  EXPECT_EQ(error_of({1, nan}, {1, 2}).largest(), inf);
  EXPECT_EQ(error_of({1, inf}, {1, 2}).mean(), inf);
  EXPECT_EQ(error_of({1, 2}, {1, 2, 3}).largest(), inf);  // another shape
  for (const float none : {nan, inf, -inf}) {
    EXPECT_EQ(error_of({1, 2}, {none, none}).largest(), inf);
    EXPECT_EQ(error_of({1, 2}, {none, none}).mean(), inf);
    EXPECT_EQ(error_of({1, 2}, {none, none}).cosine(), 0);
  }
  EXPECT_EQ(output_error({}, std::vector{numbers({1})}).cosine(), 0);
}

// Two elements in a byte. The bytes are compared, and none behind them.
TEST(OutputError, OfPackedElementsReadsTheirBytesAlone) {
  TensorValue some = make_tensor(DType::kU4, {3}).value(), other = make_tensor(DType::kU4, {3}).value();
  ASSERT_EQ(some.bytes, 2);
  EXPECT_EQ(numbers_in(some.view()), 2);
  for (int i = 0; i < 2; ++i) some.data[i] = other.data[i] = std::byte{0x21};
  EXPECT_EQ(output_error(std::vector{some}, std::vector{other}).largest(), 0);
  other.data[1] = std::byte{0x20};
  EXPECT_GT(output_error(std::vector{some}, std::vector{other}).largest(), 0);
}

TEST(OutputError, IsTheWorstOfAllOutputs) {
  const TensorValue actual[] = {numbers({0, 1}), numbers({0, 1.5F})},
                    expected[] = {numbers({0, 1}), numbers({0, 1})};
  EXPECT_NEAR(output_error(actual, expected).largest(), 0.5, 1e-6);
}

TEST(OutputError, ElementsThatDifferByRoundingAloneHaveNoRange) {
  // 1e-7 of the size is float32's own noise, so an error of 1e-3 is not 10,000 ranges.
  EXPECT_NEAR(error_of({1, 1.001F}, {1, 1.0000001F}).largest(), 0.001, 1e-5);
}

TEST(OutputError, OverSamplesIsTheLargestAndTheMean) {
  OutputError sum;
  add_samples(sum, error_of({0, 1}, {0, 1}));
  add_samples(sum, error_of({0, 0.5F}, {0, 1}));
  EXPECT_EQ(sum.samples, 2);
  EXPECT_NEAR(sum.largest(), 0.5, 1e-6);
  EXPECT_NEAR(sum.mean(), 0.125, 1e-6);
}

// One output of that shape.
std::shared_ptr<const Graph> graph_of(const std::string& name, DType dtype, const Shape& shape) {
  GraphBuilder builder("g");
  const TensorId x = builder.add_input({.name = "x", .dtype = DType::kF32, .shape = {1}});
  Op op;
  op.name = op.type = "op";
  op.inputs = {x};
  const OpId id = builder.add_op(op, {{.name = name, .dtype = dtype, .shape = shape}});
  builder.add_output(builder.outputs_of(id)[0]);
  return builder.build().value();
}

TensorError decided(const TensorValue& actual, const TensorValue& expected, const DecisionRules& rules = {},
                    const std::string& name = "y") {
  const TensorView view = actual.view();
  return output_error(*graph_of(name, expected.dtype, expected.shape), {&view, 1}, {&expected, 1}, rules)
      .outputs.front();
}

TEST(Decisions, ClassesAreTheLargestElementOfEachRow) {
  const TensorError e = decided(numbers({1, 2, 9, 0, 5, 4}, {3, 2}), numbers({1, 2, 0, 9, 5, 4}, {3, 2}));
  EXPECT_EQ(e.kind, DecisionKind::kArgmax);
  EXPECT_EQ(e.decisions, 3);
  EXPECT_EQ(e.agreeing, 2);
}

TEST(Decisions, PicturesHaveTheirClassesInChannels) {
  // Two channels of 1 x 2 pixels.
  const TensorError e = decided(numbers({1, 0, 0, 1}, {1, 2, 1, 2}), numbers({1, 0, 0, -1}, {1, 2, 1, 2}));
  EXPECT_EQ(e.kind, DecisionKind::kArgmax);
  EXPECT_EQ(e.decisions, 2);
  EXPECT_EQ(e.agreeing, 1);
}

TEST(Decisions, ATieInFloat32IsNone) {
  EXPECT_EQ(decided(numbers({1, 2}, {1, 2}), numbers({3, 3.000001F}, {1, 2})).decisions, 0);
}

TEST(Decisions, TopFiveOfTenCountsMembers) {
  const std::vector<float> expected = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  std::vector<float> actual = expected;
  std::swap(actual[4], actual[5]);  // the sixth takes the fifth's place
  const TensorError e = decided(numbers(actual, {1, 10}), numbers(expected, {1, 10}));
  EXPECT_EQ(e.agreeing, 1);
  EXPECT_EQ(e.top5, 5);
  EXPECT_EQ(e.top5_agreeing, 4);
}

TEST(Decisions, MapsOfProbabilitiesAreCutAtAHalfAndOthersAtZero) {
  const Shape map = {1, 1, 2, 2};
  const TensorError e =
      decided(numbers({0.4F, 0.6F, 0.6F, 0.1F}, map), numbers({0.4F, 0.6F, 0.4F, 0.1F}, map));
  EXPECT_EQ(e.kind, DecisionKind::kThreshold);
  EXPECT_EQ(e.decisions, 4);
  EXPECT_EQ(e.agreeing, 3);
  EXPECT_EQ(decided(numbers({-1, 2, 3, 0.4F}, map), numbers({-1, 2, 3, -0.4F}, map)).agreeing, 3);
  // 0.55 is above the usual threshold, not above this one.
  const DecisionRules rules = {{"y", parse_decision("threshold:0.58").value()}};
  EXPECT_EQ(decided(numbers({0.55F, 0, 0, 0}, map), numbers({0.45F, 0, 0, 0}, map), rules).agreeing, 4);
}

TEST(Decisions, BoxesAgreeIfTheyOverlapByHalf) {
  const Shape boxes = {1, 3, 4};
  const TensorError e = decided(numbers({0, 0, 10, 10, /**/ 0, 0, 10, 4, /**/ 0, 0, 0, 0}, boxes),
                                numbers({0, 1, 10, 11, /**/ 0, 0, 10, 10, /**/ 5, 5, 1, 1}, boxes));
  EXPECT_EQ(e.kind, DecisionKind::kBoxes);
  EXPECT_EQ(e.decisions, 2);  // the last has no area
  EXPECT_EQ(e.agreeing, 1);   // 0.82 and 0.4
}

TEST(Decisions, DetectorsDecideBoxAndClassOfEachAnchorWithAScore) {
  // Channels x, y, width, height and two classes, of 96 anchors; all but two have no score.
  const int64_t anchors = 96;
  const auto detector = [&](float x, float second_class) {
    std::vector<float> v(static_cast<size_t>(6 * anchors), 0);
    for (int64_t a = 0; a < anchors; ++a)
      v[static_cast<size_t>(2 * anchors + a)] = v[static_cast<size_t>(3 * anchors + a)] = 20;
    v[0] = x;
    v[static_cast<size_t>(4 * anchors)] = 0.9F;
    v[static_cast<size_t>(5 * anchors + 1)] = second_class;
    return numbers(v, {1, 6, anchors});
  };
  const TensorError same = decided(detector(51, 0.8F), detector(50, 0.8F));
  EXPECT_EQ(same.kind, DecisionKind::kDetections);
  EXPECT_EQ(same.decisions, 2);
  EXPECT_EQ(same.agreeing, 2);
  EXPECT_EQ(decided(detector(90, 0.8F), detector(50, 0.8F)).agreeing, 1);  // elsewhere
  EXPECT_EQ(decided(detector(50, 0.1F), detector(50, 0.8F)).agreeing, 1);  // lost
}

TEST(Decisions, SequencesOfManyClassesAreNoDetectors) {
  // 5 steps of 100 probabilities have a detector's shape, but nothing in them is a length.
  std::vector<float> v(500, 0.001F);
  for (size_t step = 0; step < 5; ++step) v[step * 100 + step] = 0.9F;
  EXPECT_EQ(decided(numbers(v, {1, 5, 100}), numbers(v, {1, 5, 100})).kind, DecisionKind::kArgmax);
}

// Steps of five classes; the first is the blank.
TensorValue steps(const std::vector<std::vector<size_t>>& rows) {
  std::vector<float> v;
  for (const auto& row : rows) {
    for (const size_t best : row) {
      for (size_t c = 0; c < 5; ++c) v.push_back(c == best ? 0.9F : 0.02F * static_cast<float>(c));
    }
  }
  return numbers(v, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size()), 5});
}

TEST(Decisions, OfARecogniserAreItsCharacters) {
  const DecisionRules ctc = {{"y", parse_decision("ctc").value()}};
  // Both read 1 1 2 and 3: a repetition is one character, and a blank between makes it two.
  const TensorError same =
      decided(steps({{1, 0, 1, 1, 2}, {0, 3, 0, 0, 0}}), steps({{1, 1, 0, 1, 2}, {3, 3, 3, 0, 0}}), ctc);
  EXPECT_EQ(same.kind, DecisionKind::kCtc);
  EXPECT_EQ(same.decisions, 4);
  EXPECT_EQ(same.agreeing, 4);
  // 1 2 4 for 1 2 3, and 1 2 3 1 for 1 2: one is replaced, two are inserted.
  const TensorError changed =
      decided(steps({{1, 2, 2, 4, 4}, {1, 2, 3, 1, 1}}), steps({{1, 2, 0, 3, 3}, {1, 2, 2, 2, 0}}), ctc);
  EXPECT_EQ(changed.decisions, 5);
  EXPECT_EQ(changed.agreeing, 2);
  // Nothing read is a decision, too.
  EXPECT_EQ(decided(steps({{0, 0, 1}}), steps({{0, 0, 0}}), ctc).agreeing, 0);
  EXPECT_EQ(decided(steps({{0, 0, 0}}), steps({{0, 0, 0}}), ctc).agreeing, 1);
  // Another blank: 0 0 is then a character, and 4 is none.
  const DecisionRules last = {{"y", parse_decision("ctc:4").value()}};
  EXPECT_EQ(decided(steps({{0, 0, 4}}), steps({{0, 4, 4}}), last).decisions, 1);
  EXPECT_EQ(decided(steps({{0, 0, 4}}), steps({{0, 4, 4}}), last).agreeing, 1);
  // A tie in the narrower type is the class of the lower number, as decoders read it.
  EXPECT_EQ(decided(numbers({1, 3, 3}, {1, 1, 3}), numbers({1, 3, 0}, {1, 1, 3}), ctc).agreeing, 1);
  // A step that float32 does not decide.
  EXPECT_EQ(decided(numbers({1, 1, 0}, {1, 1, 3}), numbers({1, 1, 0}, {1, 1, 3}), ctc).decisions, 0);
}

TEST(Decisions, IntegersAreTheirValues) {
  TensorValue a = make_tensor(DType::kI64, {3}).value(), b = make_tensor(DType::kI64, {3}).value();
  reinterpret_cast<int64_t*>(a.data.get())[1] = 7;
  const TensorError e = decided(a, b);
  EXPECT_EQ(e.kind, DecisionKind::kValues);
  EXPECT_EQ(e.decisions, 3);
  EXPECT_EQ(e.agreeing, 2);
}

TEST(Decisions, AreReadFromText) {
  EXPECT_EQ(parse_decision("argmax:2").value().axis, 2U);
  EXPECT_EQ(parse_decision("detections:0.5").value().threshold, 0.5);
  EXPECT_EQ(parse_decision("none").value().kind, DecisionKind::kNone);
  for (const char* wrong :
       {"", "argmin", "threshold", "threshold:x", "boxes:1", "argmax:-1", "threshold:inf", "ctc:x"}) {
    const auto rule = parse_decision(wrong);
    ASSERT_FALSE(rule.ok()) << wrong;
    EXPECT_EQ(rule.error().code(), Code::kInvalidInput);
    EXPECT_THAT(rule.error().to_string(), HasSubstr("expected argmax"));
  }
}

TEST(Decisions, AreForOutputsThatTheModelHas) {
  const auto graph = graph_of("scores", DType::kF32, {1, 2});
  EXPECT_TRUE(check_decisions(*graph, {{"scores", {}}}).ok());
  EXPECT_THAT(check_decisions(*graph, {{"score", {}}}).error().to_string(),
              HasSubstr("did you mean 'scores'"));
}

TEST(Decisions, OfTheLastAxisWithoutANumber) {
  const DecisionRules rules = {{"y", parse_decision("argmax").value()}};
  EXPECT_EQ(
      decided(numbers({1, 0, 0, 1}, {1, 2, 1, 2}), numbers({1, 0, 0, 1}, {1, 2, 1, 2}), rules).decisions, 2);
}

}  // namespace
}  // namespace heddle
