// The graph in flat arrays, as the evaluator and the planners need it: distinct non-input tensors read,
// tensors made, parameters with bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// Sizes come from files: a sum that leaves int64 stays at its end instead.
inline int64_t plus_bytes(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

class FlatGraph {
 public:
  explicit FlatGraph(const Graph& graph);

  std::span<const uint32_t> inputs(size_t op) const { return slice(inputs_, input_begin_, op); }
  std::span<const uint32_t> outputs(size_t op) const { return slice(outputs_, output_begin_, op); }
  std::span<const uint32_t> params(size_t op) const { return slice(params_, param_begin_, op); }
  size_t num_tensors() const { return producer_.size(); }
  int32_t producer(size_t tensor) const { return producer_[tensor]; }
  int64_t bytes(size_t tensor) const { return bytes_[tensor]; }

 private:
  static std::span<const uint32_t> slice(const std::vector<uint32_t>& v, const std::vector<uint32_t>& begin,
                                         size_t i) {
    return std::span<const uint32_t>(v).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  std::vector<uint32_t> input_begin_, inputs_, output_begin_, outputs_, param_begin_, params_;
  std::vector<int32_t> producer_;
  std::vector<int64_t> bytes_;
};

}  // namespace heddle
