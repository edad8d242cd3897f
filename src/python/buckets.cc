// choose_buckets().
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "errors.h"
#include "heddle/fleet/size_buckets.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

std::vector<int64_t> buckets_for(const std::vector<int64_t>& sizes, int most,
                                 const std::map<int64_t, double>& times) {
  std::map<int64_t, double> count;
  for (const int64_t size : sizes) {
    if (size < 1) raise(invalid_input("size " + std::to_string(size) + ": expected sizes from 1"));
    ++count[size];
  }
  std::vector<CurvePoint> points;
  for (const auto& [size, us] : times) {
    if (size < 1 || !(us >= 0))
      raise(invalid_input("the time of size " + std::to_string(size) +
                          ": expected sizes from 1, and times from 0"));
    points.push_back({static_cast<double>(size), us});
  }
  if (points.empty()) points.push_back({1, 1});
  std::vector<int64_t> all;
  std::vector<double> weight, us;
  for (const auto& [size, n] : count) {
    all.push_back(size);
    weight.push_back(n);
    us.push_back(on_curve(points, static_cast<double>(size)));
  }
  std::vector<int64_t> chosen;
  for (const size_t i : value_or_raise(choose_buckets(weight, us, most)).sizes) chosen.push_back(all[i]);
  return chosen;
}

}  // namespace

void bind_buckets(nb::module_& module) {
  module.def(
      "choose_buckets", &buckets_for, "sizes"_a, "most"_a, nb::kw_only(),
      "times"_a = std::map<int64_t, double>(),
      nb::sig("def choose_buckets(sizes: collections.abc.Sequence[int], most: int, *, "
              "times: collections.abc.Mapping[int, float] = {}) -> list[int]"),
      "At most `most` sizes to compile a model for. Requests of these `sizes` then take the least time in "
      "all, if each runs at the smallest chosen size that holds it.\n\n"
      "`times`: of one request at some sizes, in any unit, with a line between them; without it time grows "
      "in proportion to the size. Exact: no other choice takes less. `heddle serve --buckets` serves "
      "them.");
}

}  // namespace heddle::python
