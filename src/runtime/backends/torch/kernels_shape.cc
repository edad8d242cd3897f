// Ops that rearrange elements. Shapes are known when a segment is compiled, so most ops need only the
// output's shape.
#include <numeric>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

Result<Kernel> make_reshape(const OpSite& site) {
  return one([shape = site.out()](Operands in) { return in[0].reshape(shape); });
}

Result<Kernel> make_transpose(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(auto order, site.integers(1));
  if (order.empty()) {
    order.resize(site.in(0).size());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  return one([order](Operands in) { return in[0].permute(order); });
}

Result<Kernel> make_concat(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", 0, site.rank()));
  return one([axis](Operands in) { return at::cat(at::TensorList(in.data(), in.size()), axis); });
}

// Split and VariadicSplit; the outputs' shapes give the lengths.
Result<Kernel> make_split(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis(1, site.rank()));
  std::vector<int64_t> lengths;
  for (const ValueType& output : site.node.outputs)
    lengths.push_back(output.shape[static_cast<size_t>(axis)]);
  return Kernel([=](Operands in) { return at::split_with_sizes(in[0], lengths, axis); });
}

Result<Kernel> make_broadcast(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto mode,
                          site.choice("mode", "numpy", {"numpy", "bidirectional", "explicit"}));
  if (mode == "numpy" || mode == "bidirectional")
    return one([shape = site.out()](Operands in) { return in[0].expand(shape); });
  HEDDLE_ASSIGN_OR_RETURN(const auto mapping, site.integers(2));
  Shape inner(site.out().size(), 1);
  for (size_t i = 0; i < mapping.size() && i < site.in(0).size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_of(mapping[i], static_cast<int64_t>(inner.size())));
    inner[static_cast<size_t>(axis)] = site.in(0)[i];
  }
  return one([inner, shape = site.out()](Operands in) { return in[0].reshape(inner).expand(shape); });
}

Result<Kernel> make_tile(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(auto repeats, site.integers(1));
  while (repeats.size() < site.in(0).size()) repeats.insert(repeats.begin(), 1);
  return one([repeats](Operands in) { return in[0].repeat(repeats); });
}

Result<Kernel> make_reverse(const OpSite& site) {
  std::vector<int64_t> axes;
  if (site.node.attribute<std::string>("mode", "index") == "index") {
    HEDDLE_ASSIGN_OR_RETURN(axes, site.axes(1, site.rank()));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const auto mask, site.integers(1));
    for (size_t i = 0; i < mask.size() && i < site.in(0).size(); ++i)
      if (mask[i] != 0) axes.push_back(static_cast<int64_t>(i));
  }
  return one([axes](Operands in) { return at::flip(in[0], axes); });
}

// Reverses the first `length` elements of each row.
Result<Kernel> make_reverse_sequence(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t batch, site.axis_attribute("batch_axis", 0, site.rank()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t sequence, site.axis_attribute("seq_axis", 1, site.rank()));
  if (batch == sequence)
    return site.refuse("axis " + std::to_string(batch) +
                       " is its batch axis and its sequence axis; expected two");
  return one([=](Operands in) {
    const at::Tensor x = in[0].movedim({batch, sequence}, {0, 1});
    const at::Tensor places = at::arange(x.size(1), in[0].options().dtype(at::kLong)).unsqueeze(0);
    const at::Tensor lengths = in[1].to(at::kLong).unsqueeze(1);
    const at::Tensor from = at::where(places < lengths, lengths - 1 - places, places);
    const at::Tensor rows = at::arange(x.size(0), in[0].options().dtype(at::kLong)).unsqueeze(1);
    return at::index(x, {rows, from}).movedim({0, 1}, {batch, sequence});
  });
}

// Blocks of b^k neighbours between the channels and the k spatial axes.
struct BlockShape {
  Shape split;                 // the tensor with blocks as separate axes
  std::vector<int64_t> order;  // permutation that joins them
};

Result<Kernel> block_kernel(const OpSite& site, const BlockShape& block) {
  return one([block, shape = site.out()](Operands in) {
    return in[0].reshape(block.split).permute(block.order).reshape(shape);
  });
}

struct BlockSite {
  int64_t size = 1;  // block length along each axis
  int64_t axes = 0;  // number of spatial axes
  bool depth_first = false;
};

Result<BlockSite> block_site(const OpSite& site) {
  const BlockSite block{
      .size = site.node.attribute<int64_t>("block_size", 1),
      .axes = site.rank() - 2,
      .depth_first = site.node.attribute<std::string>("mode", "blocks_first") == "depth_first"};
  if (block.size < 1 || block.axes < 1)
    return site.refuse("its block size is " + std::to_string(block.size) + " and its input " +
                       shape_text(site.in(0)) + "; expected at least 1, and at least one spatial axis");
  return block;
}

Result<Kernel> make_depth_to_space(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const BlockSite given, block_site(site));
  const Shape& x = site.in(0);
  BlockShape block;
  block.split = {x[0]};
  if (given.depth_first) block.split.push_back(site.out()[1]);
  for (int64_t i = 0; i < given.axes; ++i) block.split.push_back(given.size);
  if (!given.depth_first) block.split.push_back(site.out()[1]);
  block.split.insert(block.split.end(), x.begin() + 2, x.end());
  const int64_t channel = given.depth_first ? 1 : given.axes + 1, first = given.depth_first ? 2 : 1;
  block.order = {0, channel};
  for (int64_t i = 0; i < given.axes; ++i) {
    block.order.push_back(given.axes + 2 + i);
    block.order.push_back(first + i);
  }
  return block_kernel(site, block);
}

Result<Kernel> make_space_to_depth(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const BlockSite given, block_site(site));
  const Shape& x = site.in(0);
  BlockShape block;
  block.split = {x[0], x[1]};
  for (int64_t i = 0; i < given.axes; ++i) {
    block.split.push_back(x[static_cast<size_t>(i) + 2] / given.size);
    block.split.push_back(given.size);
  }
  block.order = {0};
  if (given.depth_first) block.order.push_back(1);
  for (int64_t i = 0; i < given.axes; ++i) block.order.push_back(3 + 2 * i);
  if (!given.depth_first) block.order.push_back(1);
  for (int64_t i = 0; i < given.axes; ++i) block.order.push_back(2 + 2 * i);
  return block_kernel(site, block);
}

Result<Kernel> make_shuffle_channels(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", 1, site.rank()));
  const int64_t group = site.node.attribute<int64_t>("group", 1);
  const Shape& x = site.in(0);
  const auto a = static_cast<size_t>(axis);
  if (group < 1 || x[a] % group != 0)
    return site.refuse("its " + std::to_string(group) + " groups do not divide the axis of " +
                       std::to_string(x[a]));
  Shape split = x;
  split[a] = group;
  split.insert(split.begin() + axis + 1, x[a] / group);
  return one(
      [=, shape = x](Operands in) { return in[0].reshape(split).transpose(axis, axis + 1).reshape(shape); });
}

Result<Kernel> make_eye(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto shift, site.integers(2));
  if (shift.size() != 1) return site.refuse("its diagonal is not one number");
  const Shape shape = site.out();
  const at::ScalarType type = carrier(site.node.outputs[0].dtype);
  return one([=, diagonal = shift[0]](Operands in) {
    const int64_t rows = shape[shape.size() - 2], columns = shape.back();
    const auto options = at::TensorOptions().dtype(at::kLong).device(in[0].device());
    const at::Tensor row = at::arange(rows, options).unsqueeze(1), column = at::arange(columns, options);
    return (column - row == diagonal).to(type).expand(shape);
  });
}

constexpr KernelEntry kShapeKernels[] = {
    {"Broadcast", 1, 3, make_broadcast},
    {"Concat", 1, 1, make_concat},
    {"DepthToSpace", 1, 1, make_depth_to_space},
    {"Eye", 9, 9, make_eye},
    {"Reshape", 1, 1, make_reshape},
    {"Reverse", 1, 1, make_reverse},
    {"ReverseSequence", 1, 1, make_reverse_sequence},
    {"ShuffleChannels", 1, 1, make_shuffle_channels},
    {"SpaceToDepth", 1, 1, make_space_to_depth},
    {"Split", 1, 1, make_split},
    {"Squeeze", 1, 15, make_reshape},
    {"Tile", 1, 1, make_tile},
    {"Transpose", 1, 1, make_transpose},
    {"Unsqueeze", 1, 1, make_reshape},
    {"VariadicSplit", 1, 1, make_split},
};

}  // namespace

std::span<const KernelEntry> shape_kernels() { return kShapeKernels; }

}  // namespace heddle::torch_backend
