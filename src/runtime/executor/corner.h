// A tensor as the front corner of a larger one.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/graph/types.h"

namespace heddle {

inline bool fits_into(const Shape& small, const Shape& large) {
  bool fits = small.size() == large.size();
  for (size_t i = 0; fits && i < small.size(); ++i) fits = small[i] >= 0 && small[i] <= large[i];
  return fits;
}

// Calls with the offsets (bytes) in both tensors of each run along the last dimension, of `run` bytes, where
// the smaller tensor is the front corner of the larger one.
template <class Visit>
void visit_corner(const Shape& small, const Shape& large, int64_t element, const Visit& visit) {
  if (small.empty()) return visit(0, 0, static_cast<size_t>(element));
  const int64_t run = small.back() * element, stride = large.back() * element;
  int64_t runs = run > 0 ? 1 : 0;
  for (size_t i = 0; i + 1 < small.size(); ++i) runs *= small[i];
  std::vector<int64_t> at(small.size() - 1);
  for (int64_t r = 0; r < runs; ++r) {
    int64_t row = 0;
    for (size_t i = 0; i < at.size(); ++i) row = row * large[i] + at[i];
    visit(r * run, row * stride, static_cast<size_t>(run));
    for (size_t i = at.size(); i > 0; --i) {
      if (++at[i - 1] != small[i - 1]) break;
      at[i - 1] = 0;
    }
  }
}

}  // namespace heddle
