// Inputs whose shape varies from request to request: the buckets, shapes that a model is compiled for, and what
// is known of the requests' shapes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle {

using NamedShapes = std::map<std::string, Shape>;  // by input

struct ShapeCount {
  NamedShapes shapes;  // "" stands for the only input
  double count = 1;
};

inline constexpr double kPaddingLimit = 1e-3;
inline constexpr int kUsualBuckets = 4;

struct BucketShapes {
  std::vector<NamedShapes> shapes;  // ascending by elements
  NamedShapes open;                 // one of them with -1 for the dimensions that have a list
};

struct VaryingSettings {
  BucketShapes buckets;               // without shapes: chosen for `requests`
  std::vector<ShapeCount> requests;   // the distribution that is expected; empty: unknown, all buckets alike
  int most_buckets = kUsualBuckets;   // of those chosen, 1 .. kMostBuckets
  std::map<std::string, double> pad;  // the value that an input is padded with; others: 0
  // Inputs are padded if that changes no output by more than this part of its largest value; negative: never.
  double padding_limit = kPaddingLimit;

  bool any() const { return !buckets.shapes.empty() || !requests.empty(); }
};

// "x=1,3,48,{160,320}": bucket number k has the k-th size of each list in braces, of all inputs. Errors
// (invalid input): no list, lists of different lengths, more than kMostBuckets, a size below 1, an input that
// is given twice.
Result<BucketShapes> parse_buckets(std::span<const std::string> texts);
// The same as JSON, {"x": [1, 3, 48, [160, 320]]}.
Result<BucketShapes> buckets_from_json(const JsonCursor& json);

// A text with the shapes of one request a line: "1,3,48,213" for a model with one input, or "x=1,3,48,213
// y=1,7"; behind them perhaps "*12", how often it came. Empty lines and those from '#' on say nothing. Equal
// requests are counted together, in the order of their first. Errors name the line; also a text without a
// request.
Result<std::vector<ShapeCount>> parse_shape_trace(const std::string& text);
Result<std::vector<ShapeCount>> read_shape_trace(const std::string& path);

// "0.001" or "never" to a padding_limit.
Result<double> parse_padding(const std::string& text);

// "1x3x48x160", or "x=1x160 mask=1x160" of several inputs.
std::string shapes_text(const NamedShapes& shapes);

// The shapes that requests were given for an unnamed input, under the name of the model's only input. Requests that are
// equal then are counted together. Errors:
// the model has several inputs, or none of a name; a request has other inputs or another number of dimensions
// than the first one.
Result<std::vector<ShapeCount>> with_names(std::vector<ShapeCount> requests,
                                           std::span<const std::string> inputs);

// The requests' different shapes in ascending order, if they form a chain: of any two, one is at least as large
// in every dimension, as when one dimension varies, or several together. Else invalid input, with two shapes
// that do not compare.
Result<std::vector<ShapeCount>> chain_of(std::vector<ShapeCount> requests);

// Has `large` all inputs of `small`, each at least as large in every dimension?
bool covers(const NamedShapes& large, const NamedShapes& small);

// Elements of all inputs together.
double elements_of(const NamedShapes& shapes);

}  // namespace heddle
