// Rows for the linear program: the work of a window on an exclusive set of devices. docs/bounds.md, section
// 12.
#pragma once

#include <span>
#include <vector>

#include "heddle/plan/relaxation.h"
#include "heddle/solve/milp.h"

namespace heddle {

class LpWindows {
 public:
  // `known_us` is a bound that holds already: windows whose head and tail alone exceed it are not looked at.
  LpWindows(const Relaxation& relaxation, double known_us);

  // For each exclusive set of devices adds the row T >= a + b + sum of t(v, i) x(v, i), over ops and devices
  // of the set with a head of at least a and a tail of at least b, that `values` violates most. Returns how
  // many; none twice. Times count in `unit_us`. O(n D log n): some 200 heads are tried.
  int add_rows(std::span<const double> values, std::span<const Var> placement, Var total, double unit_us,
               Milp& milp) const;

 private:
  const Relaxation& r_;
  const size_t n_, k_;
  const double known_us_;
};

}  // namespace heddle
