// Slices and padding.
#include <algorithm>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

// `length` elements of an axis: start, start + step, ...
struct Stride {
  int64_t axis = 0, start = 0, step = 1, length = 0;
};

at::Tensor take(const at::Tensor& x, const Stride& s) {
  if (s.length == 0) return x.narrow(s.axis, 0, 0);
  const int64_t last = s.start + (s.length - 1) * s.step;
  if (s.step > 0) return x.slice(s.axis, s.start, last + 1, s.step);
  return at::flip(x.slice(s.axis, last, s.start + 1, -s.step), {s.axis});
}

Kernel take_all(std::vector<Stride> strides, Shape shape) {
  return one([strides = std::move(strides), shape = std::move(shape)](Operands in) {
    at::Tensor x = in[0];
    for (const Stride& s : strides) x = take(x, s);
    return x.reshape(shape);
  });
}

// A bound as given: negative values count from the end. Clamped to [low, high] without overflow.
int64_t bound(int64_t given, int64_t size, int64_t low, int64_t high) {
  if (given < 0) given = given < -size ? low : given + size;
  return std::clamp(given, low, high);
}

Result<Stride> stride_of(const OpSite& site, int64_t axis, int64_t size, int64_t start, int64_t stop,
                         int64_t step) {
  if (step == 0) return site.refuse("its step is 0; expected a step other than 0");
  // Longer steps select one element, too.
  step = std::clamp(step, -size - 1, size + 1);
  Stride result{.axis = axis, .start = 0, .step = step, .length = 0};
  if (step > 0) {
    result.start = bound(start, size, 0, size);
    result.length = (bound(stop, size, 0, size) - result.start + step - 1) / step;
  } else {
    result.start = bound(start, size, -1, size - 1);
    result.length = (bound(stop, size, -1, size - 1) - result.start + step + 1) / step;
  }
  result.length = std::max<int64_t>(result.length, 0);
  return result;
}

Result<Kernel> make_slice(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto starts, site.integers(1));
  HEDDLE_ASSIGN_OR_RETURN(const auto stops, site.integers(2));
  HEDDLE_ASSIGN_OR_RETURN(const auto steps, site.integers(3));
  std::vector<int64_t> axes;
  if (site.has_input(4)) {
    HEDDLE_ASSIGN_OR_RETURN(axes, site.integers(4));
  } else {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (stops.size() != starts.size() || steps.size() != starts.size() || axes.size() != starts.size())
    return site.refuse("its starts, stops, steps and axes differ in number");
  std::vector<Stride> strides;
  for (size_t i = 0; i < axes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_of(axes[i], site.rank()));
    const int64_t size = site.in(0)[static_cast<size_t>(axis)];
    HEDDLE_ASSIGN_OR_RETURN(const Stride s, stride_of(site, axis, size, starts[i], stops[i], steps[i]));
    strides.push_back(s);
  }
  return take_all(std::move(strides), site.out());
}

// Masks have one entry for each entry of begin and end; later dimensions are taken whole.
class StridedSliceMaker {
 public:
  explicit StridedSliceMaker(const OpSite& site) : site_(site) {}

  Result<Kernel> run() {
    HEDDLE_ASSIGN_OR_RETURN(begin_, site_.integers(1));
    HEDDLE_ASSIGN_OR_RETURN(end_, site_.integers(2));
    if (site_.has_input(3)) {
      HEDDLE_ASSIGN_OR_RETURN(steps_, site_.integers(3));
    }
    steps_.resize(begin_.size(), 1);
    if (end_.size() != begin_.size()) return site_.refuse("its begins and ends differ in number");
    int64_t consumed = 0;  // dimensions consumed by entries other than the ellipsis
    for (size_t i = 0; i < begin_.size(); ++i)
      consumed += marked("new_axis_mask", i) || marked("ellipsis_mask", i) ? 0 : 1;
    int64_t axis = 0;
    for (size_t i = 0; i < begin_.size(); ++i) {
      if (marked("ellipsis_mask", i)) {
        axis += site_.rank() - consumed;
      } else if (!marked("new_axis_mask", i)) {
        if (axis >= site_.rank()) return site_.refuse("it has more bounds than its input has axes");
        HEDDLE_RETURN_IF_ERROR(add(i, axis++));
      }
    }
    return take_all(std::move(strides_), site_.out());
  }

 private:
  bool marked(const char* mask, size_t i) const {
    const auto marks = site_.node.attribute<std::vector<int64_t>>(mask, {});
    return i < marks.size() && marks[i] != 0;
  }

  Status add(size_t i, int64_t axis) {
    const int64_t size = site_.in(0)[static_cast<size_t>(axis)];
    if (marked("shrink_axis_mask", i)) {
      const int64_t place = normal_axis(begin_[i], size);
      if (place < 0)
        return site_.refuse("index " + std::to_string(begin_[i]) + " is outside its axis of " +
                            std::to_string(size));
      strides_.push_back({.axis = axis, .start = place, .step = 1, .length = 1});
      return {};
    }
    const bool up = steps_[i] > 0;
    // A masked bound is the dimension's end in the step's direction.
    const int64_t start = !marked("begin_mask", i) ? begin_[i] : up ? 0 : size;
    const int64_t stop = !marked("end_mask", i) ? end_[i] : up ? size : -size - 1;
    HEDDLE_ASSIGN_OR_RETURN(const Stride s, stride_of(site_, axis, size, start, stop, steps_[i]));
    strides_.push_back(s);
    return {};
  }

  const OpSite& site_;
  std::vector<int64_t> begin_, end_, steps_;
  std::vector<Stride> strides_;
};

Result<Kernel> make_strided_slice(const OpSite& site) { return StridedSliceMaker(site).run(); }

// Source index, in an axis of `size`, of element i of the padded axis.
int64_t source_of(int64_t i, int64_t size, const std::string& mode) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  const int64_t period = mode == "reflect" ? std::max<int64_t>(2 * (size - 1), 1) : 2 * size;
  const int64_t j = (i % period + period) % period;
  if (j < size) return j;
  return mode == "reflect" ? period - j : period - 1 - j;
}

Result<Kernel> make_pad(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto before, site.integers(1));
  HEDDLE_ASSIGN_OR_RETURN(const auto after, site.integers(2));
  const size_t rank = site.in(0).size();
  if (before.size() != rank || after.size() != rank) return site.refuse("its pads are not one per dimension");
  HEDDLE_ASSIGN_OR_RETURN(const auto mode,
                          site.choice("pad_mode", "constant", {"constant", "edge", "reflect", "symmetric"}));
  if (mode == "constant") {
    std::vector<int64_t> pads;  // from the last dimension to the first
    for (size_t i = rank; i-- > 0;) pads.insert(pads.end(), {before[i], after[i]});
    if (!site.has_input(3)) return one([=](Operands in) { return at::constant_pad_nd(in[0], pads, 0); });
    if (site.constants[3].defined()) {
      const at::Scalar value = site.constants[3].reshape({}).item();
      return one([=](Operands in) { return at::constant_pad_nd(in[0], pads, value); });
    }
    return one([=](Operands in) { return at::constant_pad_nd(in[0], pads, in[3].reshape({}).item()); });
  }
  std::vector<at::Tensor> indices(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (before[d] == 0 && after[d] == 0) continue;
    const int64_t size = site.in(0)[d], length = site.out()[d];
    if (size == 0 && length > 0) return site.refuse("it repeats the border of an empty axis");
    std::vector<int64_t> index;
    for (int64_t i = 0; i < length; ++i) index.push_back(source_of(i - before[d], size, mode));
    indices[d] = at::tensor(index, at::kLong).to(site.device);
  }
  return one([indices](Operands in) {
    at::Tensor x = in[0];
    for (size_t d = 0; d < indices.size(); ++d)
      if (indices[d].defined()) x = at::index_select(x, static_cast<int64_t>(d), indices[d]);
    return x;
  });
}

constexpr KernelEntry kSliceKernels[] = {
    {"Pad", 1, 12, make_pad},
    {"Slice", 8, 8, make_slice},
    {"StridedSlice", 1, 1, make_strided_slice},
};

}  // namespace

std::span<const KernelEntry> slice_kernels() { return kSliceKernels; }

}  // namespace heddle::torch_backend
