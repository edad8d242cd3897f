// Reductions over axes, and running sums.
#include <algorithm>
#include <limits>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

using Axes = std::vector<int64_t>;
using Reduction = at::Tensor (*)(const at::Tensor&, const Axes&);

at::Tensor sum(const at::Tensor& x, const Axes& axes) { return at::sum(x, axes, true); }

// Integers are rounded towards zero.
at::Tensor mean(const at::Tensor& x, const Axes& axes) {
  if (at::isFloatingType(x.scalar_type())) return at::mean(x, axes, true);
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.size(axis);
  return at::div(at::sum(x, axes, true), std::max<int64_t>(count, 1), "trunc");
}

// The least or greatest number of an integer type.
int64_t end_of(const at::Tensor& x, bool least) {
  const auto bits = static_cast<int>(8 * x.element_size());
  if (!at::isSignedType(x.scalar_type()))
    return least ? 0 : std::numeric_limits<int64_t>::max() >> (63 - std::min(bits, 63));
  const int64_t greatest = std::numeric_limits<int64_t>::max() >> (64 - bits);
  return least ? -greatest - 1 : greatest;
}

// Without elements: the neutral element, as ONNX defines it.
at::Tensor extreme(const at::Tensor& x, const Axes& axes, bool largest) {
  for (const int64_t axis : axes) {
    if (x.size(axis) != 0) continue;
    std::vector<int64_t> shape = x.sizes().vec();
    for (const int64_t a : axes) shape[static_cast<size_t>(a)] = 1;
    if (x.scalar_type() == at::kBool) return at::full(shape, !largest, x.options());
    if (!at::isFloatingType(x.scalar_type())) return at::full(shape, end_of(x, largest), x.options());
    const double end =
        largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return at::full(shape, end, x.options());
  }
  return largest ? at::amax(x, axes, true) : at::amin(x, axes, true);
}
at::Tensor largest(const at::Tensor& x, const Axes& axes) { return extreme(x, axes, true); }
at::Tensor smallest(const at::Tensor& x, const Axes& axes) { return extreme(x, axes, false); }

at::Tensor product_over(const at::Tensor& x, const Axes& axes) {
  at::Tensor result = x;
  for (const int64_t axis : axes) result = at::prod(result, axis, true);
  return result;
}
at::Tensor absolute_sum(const at::Tensor& x, const Axes& axes) { return at::sum(at::abs(x), axes, true); }
at::Tensor length(const at::Tensor& x, const Axes& axes) {
  const at::Tensor squares = at::sum(at::mul(x, x), axes, true);
  return at::isFloatingType(x.scalar_type()) ? at::sqrt(squares) : at::sqrt(squares.to(at::kDouble));
}
at::Tensor all(const at::Tensor& x, const Axes& axes) {
  at::Tensor result = x.to(at::kBool);
  for (const int64_t axis : axes) result = at::all(result, axis, true);
  return result;
}
at::Tensor any(const at::Tensor& x, const Axes& axes) {
  at::Tensor result = x.to(at::kBool);
  for (const int64_t axis : axes) result = at::any(result, axis, true);
  return result;
}

// Without axes, each element is reduced alone.
template <Reduction F, bool OfOne>
Result<Kernel> reduce(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const Axes axes, site.axes(1, site.rank()));
  const Shape shape = site.out();
  if (axes.empty() && !OfOne) return one([](Operands in) { return in[0]; });
  if (axes.empty()) return one([](Operands in) { return at::abs(in[0]); });
  return one([axes, shape](Operands in) { return F(in[0], axes).reshape(shape); });
}

// The axis need not be constant, since it changes no shape.
Result<Kernel> make_cumulative_sum(const OpSite& site) {
  if (site.rank() < 1) return site.refuse("its input is one number; expected at least one axis");
  const bool exclusive = site.node.attribute<bool>("exclusive", false);
  const bool reverse = site.node.attribute<bool>("reverse", false);
  return one([=](Operands in) {
    const int64_t axis = normal_axis(in[1].reshape({}).item<int64_t>(), in[0].dim());
    TORCH_CHECK(axis >= 0, "the axis of a running sum is none of its tensor");
    const at::Tensor x = reverse ? at::flip(in[0], {axis}) : in[0];
    at::Tensor sums = at::cumsum(x, axis);
    if (exclusive && x.size(axis) > 0) {
      const at::Tensor first = at::zeros_like(sums.narrow(axis, 0, 1));
      sums = at::cat({first, sums.narrow(axis, 0, x.size(axis) - 1)}, axis);
    }
    return reverse ? at::flip(sums, {axis}) : sums;
  });
}

constexpr KernelEntry kReduceKernels[] = {
    {"CumSum", 3, 3, make_cumulative_sum},
    {"ReduceL1", 4, 4, reduce<absolute_sum, true>},
    {"ReduceL2", 4, 4, reduce<length, true>},
    {"ReduceLogicalAnd", 1, 1, reduce<all, false>},
    {"ReduceLogicalOr", 1, 1, reduce<any, false>},
    {"ReduceMax", 1, 1, reduce<largest, false>},
    {"ReduceMean", 1, 1, reduce<mean, false>},
    {"ReduceMin", 1, 1, reduce<smallest, false>},
    {"ReduceProd", 1, 1, reduce<product_over, false>},
    {"ReduceSum", 1, 1, reduce<sum, false>},
};

}  // namespace

std::span<const KernelEntry> reduce_kernels() { return kReduceKernels; }

}  // namespace heddle::torch_backend
