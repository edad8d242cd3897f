#include "decisions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

constexpr std::array kKindNames = {"none", "argmax", "threshold", "boxes", "detections", "values", "ctc"};
constexpr int64_t kTop = 5;
constexpr int64_t kLeastClassesForTop = 10;
constexpr double kMatchingOverlap = 0.5;  // intersection over union
constexpr double kUsualScore = 0.25;      // from which detectors keep a box
constexpr int64_t kBoxSides = 4;
// Detectors have many more anchors than channels.
constexpr int64_t kAnchorsPerChannel = 16;
// Two numbers that are closer than this part of the larger one are equal in float32.
constexpr double kTie = 1e-5;

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 || dtype == DType::kBF16;
}

int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool are_probabilities(const TensorView& tensor) {
  for (int64_t i = 0; i < elements(tensor.shape); ++i) {
    const double v = element_as_double(tensor, i);
    if (!(v >= 0 && v <= 1)) return false;
  }
  return true;
}

// Many more anchors than channels; the first channels are lengths in pixels, the others scores.
bool are_detections(const TensorView& tensor) {
  const Shape& shape = tensor.shape;
  if (shape.size() != 3 || shape[1] <= kBoxSides || shape[2] < kAnchorsPerChannel * shape[1]) return false;
  double longest = 0;
  for (int64_t i = 0; i < elements(shape); ++i) {
    const double v = element_as_double(tensor, i);
    const bool is_length = i / shape[2] % shape[1] < kBoxSides;
    if (is_length) longest = std::max(longest, v);
    if (!is_length && !(v >= 0 && v <= 1)) return false;
  }
  return longest > 1;
}

// A tensor as `outer` blocks of `classes` rows of `inner` elements.
struct Axis {
  int64_t outer = 1, classes = 1, inner = 1;
  int64_t at(int64_t o, int64_t c, int64_t i) const { return (o * classes + c) * inner + i; }
};

Axis along(const Shape& shape, size_t axis) {
  Axis a;
  for (size_t d = 0; d < shape.size(); ++d)
    (d < axis ? a.outer : d == axis ? a.classes : a.inner) *= shape[d];
  return a;
}

class DecisionCount {
 public:
  DecisionCount(const TensorView& actual, const TensorView& expected, TensorError& error)
      : actual_(actual), expected_(expected), error_(error) {}

  void argmax(size_t axis) {
    if (axis >= expected_.shape.size()) return;
    const Axis a = along(expected_.shape, axis);
    if (a.classes < 2) return;
    for (int64_t o = 0; o < a.outer; ++o) {
      for (int64_t i = 0; i < a.inner; ++i) one_argmax(a, o, i);
    }
  }

  void characters(int64_t blank) {
    const Shape& shape = expected_.shape;
    if (shape.size() < 2 || shape.back() < 2) return;
    const Axis a = along(shape, shape.size() - 1);
    const int64_t steps = shape[shape.size() - 2];
    for (int64_t first = 0; first + steps <= a.outer && steps > 0; first += steps) {
      const Text theirs = text(expected_, a, first, steps, blank);
      if (theirs.has_tie) continue;
      const Text ours = text(actual_, a, first, steps, blank);
      // An empty text is one decision.
      const auto length = static_cast<int64_t>(std::max<size_t>(theirs.classes.size(), 1));
      error_.decisions += length;
      error_.agreeing += std::max<int64_t>(0, length - edits(ours.classes, theirs.classes));
    }
  }

  void threshold(double value) {
    for (int64_t i = 0; i < elements(expected_.shape); ++i) {
      const double b = reference(i);
      if (std::fabs(b - value) <= kTie * std::max(std::fabs(b), std::fabs(value))) continue;
      count((element_as_double(actual_, i) > value) == (b > value));
    }
  }

  void values() {
    for (int64_t i = 0; i < numbers_in(expected_); ++i) count(element_as_double(actual_, i) == reference(i));
  }

  void boxes() {
    if (expected_.shape.empty() || expected_.shape.back() != kBoxSides) return;
    for (int64_t at = 0; at < elements(expected_.shape); at += kBoxSides) {
      const auto b = corners(expected_, at);
      if (b[2] > b[0] && b[3] > b[1]) count(overlap(corners(actual_, at), b) >= kMatchingOverlap);
    }
  }

  void detections(double score) {
    const Shape& shape = expected_.shape;
    if (shape.size() != 3 || shape[1] <= kBoxSides) return;
    const Axis a = along(shape, 1);
    for (int64_t o = 0; o < a.outer; ++o) {
      for (int64_t i = 0; i < a.inner; ++i) {
        const auto ours = detection(actual_, a, o, i, score), theirs = detection(expected_, a, o, i, score);
        if (!ours && !theirs) continue;
        count(ours && theirs && ours->label == theirs->label &&
              overlap(ours->box, theirs->box) >= kMatchingOverlap);
      }
    }
  }

 private:
  using Box = std::array<double, kBoxSides>;  // x1, y1, x2, y2
  struct Detection {
    Box box;
    int64_t label = 0;
  };

  double reference(int64_t i) const { return element_as_double(expected_, i); }
  void count(bool agrees) {
    ++error_.decisions;
    error_.agreeing += agrees ? 1 : 0;
  }

  // Classes by their values, largest first; ties by number.
  static std::vector<int64_t> largest(const TensorView& tensor, const Axis& a, int64_t o, int64_t i,
                                      int64_t n) {
    std::vector<int64_t> order(static_cast<size_t>(a.classes));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int64_t c) {
      const double v = element_as_double(tensor, a.at(o, c, i));
      return std::isnan(v) ? -std::numeric_limits<double>::infinity() : v;
    };
    std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](int64_t x, int64_t y) {
      return value(x) != value(y) ? value(x) > value(y) : x < y;
    });
    order.resize(static_cast<size_t>(n));
    return order;
  }

  void one_argmax(const Axis& a, int64_t o, int64_t i) {
    const int64_t top = a.classes >= kLeastClassesForTop ? kTop : 1;
    // One more, which shows a tie for the last place.
    const auto theirs = largest(expected_, a, o, i, std::min(top + 1, a.classes));
    const auto ours = largest(actual_, a, o, i, top);
    const auto value = [&](int64_t rank) { return reference(a.at(o, theirs[static_cast<size_t>(rank)], i)); };
    if (!is_tie(value(0), value(1))) count(ours[0] == theirs[0]);
    if (top == 1 || is_tie(value(top - 1), value(top))) return;
    error_.top5 += top;
    for (int64_t r = 0; r < top; ++r)
      error_.top5_agreeing +=
          std::find(ours.begin(), ours.end(), theirs[static_cast<size_t>(r)]) != ours.end();
  }

  // `larger`, if not NaN, is not surely above `other`.
  static bool is_tie(double larger, double other) {
    return !(larger - other > kTie * std::max(std::fabs(larger), std::fabs(other)));
  }

  // The classes of the steps without repetitions and blanks.
  struct Text {
    std::vector<int64_t> classes;
    bool has_tie = false;  // in some step
  };
  static Text text(const TensorView& tensor, const Axis& a, int64_t first, int64_t steps, int64_t blank) {
    Text read;
    int64_t before = blank;
    for (int64_t step = first; step < first + steps; ++step) {
      const auto two = largest(tensor, a, step, 0, 2);
      read.has_tie |= is_tie(element_as_double(tensor, a.at(step, two[0], 0)),
                             element_as_double(tensor, a.at(step, two[1], 0)));
      if (two[0] != before && two[0] != blank) read.classes.push_back(two[0]);
      before = two[0];
    }
    return read;
  }

  // Characters to insert, delete or replace until both are equal (Levenshtein). O(length x length).
  static int64_t edits(const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
    std::vector<int64_t> row(y.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      int64_t diagonal = std::exchange(row[0], static_cast<int64_t>(i) + 1);
      for (size_t j = 0; j < y.size(); ++j) {
        const int64_t replaced = diagonal + (x[i] == y[j] ? 0 : 1);
        diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
      }
    }
    return row.back();
  }

  static Box corners(const TensorView& tensor, int64_t at) {
    Box box;
    for (size_t k = 0; k < box.size(); ++k) box[k] = element_as_double(tensor, at + static_cast<int64_t>(k));
    return box;
  }

  static double overlap(const Box& a, const Box& b) {
    const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
    const double height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
    if (!(width > 0 && height > 0)) return 0;
    const double both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);
    return width * height / (both - width * height);
  }

  static std::optional<Detection> detection(const TensorView& tensor, const Axis& a, int64_t o, int64_t i,
                                            double score) {
    const auto at = [&](int64_t channel) { return element_as_double(tensor, a.at(o, channel, i)); };
    int64_t best = kBoxSides;
    for (int64_t c = kBoxSides + 1; c < a.classes; ++c) best = at(c) > at(best) ? c : best;
    if (!(at(best) >= score)) return std::nullopt;
    const double x = at(0), y = at(1), width = at(2), height = at(3);
    return Detection{{x - width / 2, y - height / 2, x + width / 2, y + height / 2}, best - kBoxSides};
  }

  const TensorView& actual_;
  const TensorView& expected_;
  TensorError& error_;
};

}  // namespace

const char* decision_kind_name(DecisionKind kind) { return kKindNames[static_cast<size_t>(kind)]; }
std::optional<DecisionKind> decision_kind_named(std::string_view name) {
  return enum_named<DecisionKind>(kKindNames, name);
}

DecisionRule usual_decision(const Tensor& tensor, const TensorView& reference) {
  const Shape& shape = reference.shape;
  if (!is_float(reference.dtype)) return {DecisionKind::kValues, 0, 0};
  if (elements(shape) == 0 || shape.empty()) return {};
  const size_t last = shape.size() - 1;
  const bool named_box = tensor.name.find("box") != std::string::npos;
  if (shape[last] == kBoxSides && last > 0 && (last > 1 || named_box)) return {DecisionKind::kBoxes, 0, 0};
  if (are_detections(reference)) return {DecisionKind::kDetections, 0, kUsualScore};
  // Pictures have their classes in channels, all else in the last dimension.
  const size_t axis = shape.size() >= 4 ? shape.size() - 3 : last;
  if (shape.size() >= 2 && shape[axis] >= 2) return {DecisionKind::kArgmax, axis, 0};
  return {DecisionKind::kThreshold, 0, are_probabilities(reference) ? 0.5 : 0.0};
}

Result<DecisionRule> parse_decision(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto kind = decision_kind_named(name);
  const auto number = parse_number<double>(value);
  if (kind && *kind == DecisionKind::kCtc) {
    const auto blank = parse_number<size_t>(value);
    if (blank || value.empty()) return DecisionRule{*kind, blank.value_or(0), 0};
  }
  const bool takes = kind && (*kind == DecisionKind::kThreshold || *kind == DecisionKind::kDetections);
  if (kind && *kind == DecisionKind::kArgmax) {
    const auto axis = parse_number<size_t>(value);
    if (axis) return DecisionRule{*kind, *axis, 0};
    // The last one of any tensor.
    if (value.empty()) return DecisionRule{*kind, SIZE_MAX, 0};
  } else if (takes && number && std::isfinite(*number)) {
    return DecisionRule{*kind, 0, *number};
  } else if (kind && value.empty() && *kind != DecisionKind::kThreshold) {
    return DecisionRule{*kind, 0, *kind == DecisionKind::kDetections ? kUsualScore : 0.0};
  }
  return invalid_input("decision " + quote_text(text) +
                       ": expected argmax, argmax:AXIS, threshold:VALUE, boxes, detections, "
                       "detections:SCORE, ctc, ctc:BLANK, values or none");
}

void compare_decisions(const DecisionRule& rule, const TensorView& actual, const TensorView& expected,
                       TensorError& error) {
  error.kind = rule.kind;
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) return;
  DecisionCount counted(actual, expected, error);
  switch (rule.kind) {
    case DecisionKind::kNone:
      return;
    case DecisionKind::kArgmax:
      return counted.argmax(rule.axis == SIZE_MAX ? expected.shape.size() - 1 : rule.axis);
    case DecisionKind::kThreshold:
      return counted.threshold(rule.threshold);
    case DecisionKind::kBoxes:
      return counted.boxes();
    case DecisionKind::kDetections:
      return counted.detections(rule.threshold);
    case DecisionKind::kValues:
      return counted.values();
    case DecisionKind::kCtc:
      return counted.characters(static_cast<int64_t>(rule.axis));
  }
}

}  // namespace heddle
