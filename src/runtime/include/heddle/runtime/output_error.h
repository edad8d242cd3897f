// The difference between a narrower type's outputs and those of the same model in float32. It counts numbers, and the
// decisions that a user takes from them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// What a user reads off an output.
enum class DecisionKind : uint8_t {
  kNone,       // its numbers
  kArgmax,     // the class of the largest element along an axis; also the five largest of ten or more
  kThreshold,  // whether an element is above a threshold
  kBoxes,  // boxes x1, y1, x2, y2 along the last axis; two agree if their intersection over union is 0.5 or more
  kDetections,  // channels centre x, centre y, width, height and one score for each class, along axis 1
  kValues,      // each element, of integers and bools
  kCtc,  // the characters that CTC reads: classes of [..., steps, classes] without repetitions and blanks
};
const char* decision_kind_name(DecisionKind kind);  // "none", "argmax", "threshold", ...
std::optional<DecisionKind> decision_kind_named(std::string_view name);

struct DecisionRule {
  DecisionKind kind = DecisionKind::kNone;
  size_t axis = 0;       // kArgmax; kCtc: the class of the blank
  double threshold = 0;  // kThreshold: of elements; kDetections: of the best score
};

// A guess from type and shape; the reference's values give the threshold: 0.5 of probabilities, 0 of others.
DecisionRule usual_decision(const Tensor& tensor, const TensorView& reference);
// "argmax", "argmax:AXIS", "threshold:VALUE", "boxes", "detections", "detections:SCORE", "ctc", "ctc:BLANK", "values"
// or "none". Invalid input, with the forms, for other texts.
Result<DecisionRule> parse_decision(std::string_view text);

struct TensorError {
  std::string output;
  // Of an element, as a part of the output's range in float32. The range of an output whose elements differ by no
  // more than float32's rounding is its largest magnitude.
  double largest = 0, mean = 0;
  double cosine = 1;  // between the outputs as vectors
  DecisionKind kind = DecisionKind::kNone;
  // Decisions that float32 takes, without ties, and how many of them are the same.
  int64_t decisions = 0, agreeing = 0;
  int64_t top5 = 0, top5_agreeing = 0;  // members of the five largest
};

// Over samples: the largest error is the largest of all, the mean error the mean, the cosine the smallest.
struct OutputError {
  std::vector<TensorError> outputs;
  int samples = 0;

  // Of the worst output.
  double largest() const;
  double mean() const;
  double cosine() const;
  double agreement() const;  // a share of 1; 1 without decisions
  double top5_agreement() const;
  int64_t decisions() const;  // of all outputs
};

// Rules by the output's name; other outputs have usual_decision().
using DecisionRules = std::map<std::string, DecisionRule>;
// Invalid input, with the graph's outputs, if a rule is for none of them.
Status check_decisions(const Graph& graph, const DecisionRules& rules);

// One sample. Outputs of other types or shapes, and numbers that are not finite where float32's are, have
// infinite errors. O(elements).
OutputError output_error(const Graph& graph, std::span<const TensorView> actual,
                         std::span<const TensorValue> expected, const DecisionRules& rules = {});
// The same without names and decisions, for outputs that are not those of a graph.
OutputError output_error(std::span<const TensorValue> actual, std::span<const TensorValue> expected);
// Both have the same outputs, or one has none yet.
void add_samples(OutputError& sum, const OutputError& more);

}  // namespace heddle
