#include "windows.h"

#include <algorithm>

namespace heddle::torch_backend {

std::vector<int64_t> spatial(const Shape& shape) {
  return shape.size() < 2 ? std::vector<int64_t>() : std::vector<int64_t>(shape.begin() + 2, shape.end());
}

std::vector<int64_t> Windows::pads() const {
  std::vector<int64_t> list;
  for (size_t i = rank(); i-- > 0;) {
    list.push_back(pads_begin[i]);
    list.push_back(span(i) - input[i] - pads_begin[i]);
  }
  return list;
}

Result<Windows> windows_of(const OpSite& site, std::vector<int64_t> kernel, std::vector<int64_t> input,
                           std::vector<int64_t> output) {
  const size_t rank = kernel.size();
  Windows w{.kernel = std::move(kernel),
            .strides = site.node.attribute<std::vector<int64_t>>("strides", {}),
            .dilations = site.node.attribute<std::vector<int64_t>>("dilations", {}),
            .pads_begin = site.node.attribute<std::vector<int64_t>>("pads_begin", {}),
            .input = std::move(input),
            .output = std::move(output)};
  if (w.strides.empty()) w.strides.assign(rank, 1);
  if (w.dilations.empty()) w.dilations.assign(rank, 1);
  if (w.pads_begin.empty()) w.pads_begin.assign(rank, 0);
  if (rank < 1 || rank > 3) return site.refuse("expected one to three spatial axes");
  for (const auto* list : {&w.strides, &w.dilations, &w.pads_begin, &w.input, &w.output})
    if (list->size() != rank) return site.refuse("its strides, dilations or pads are not one per axis");
  const auto least = [](const std::vector<int64_t>& list) {
    return *std::min_element(list.begin(), list.end());
  };
  if (least(w.kernel) < 1 || least(w.strides) < 1 || least(w.dilations) < 1)
    return site.refuse("expected positive kernel sizes, strides and dilations");
  if (least(w.input) < 1 || least(w.output) < 1) return site.refuse("an empty tensor");
  const auto rule = site.node.attribute<std::string>("auto_pad", "explicit");
  if (rule == "valid") w.pads_begin.assign(rank, 0);
  if (rule == "same_upper" || rule == "same_lower") {
    for (size_t i = 0; i < rank; ++i) {
      const int64_t total = std::max<int64_t>(w.span(i) - w.input[i], 0);
      w.pads_begin[i] = rule == "same_upper" ? total / 2 : total - total / 2;
    }
  }
  return w;
}

}  // namespace heddle::torch_backend
