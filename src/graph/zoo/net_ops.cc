// The nodes of the zoo's networks: output shapes, arithmetic, ONNX attributes. Each is one ONNX node of opset
// 17 and one OpenVINO op.
#include <algorithm>

#include "net.h"
#include "onnx/onnx_writer.h"

namespace heddle::zoo {
namespace {

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

// Returns 0 if the kernel does not fit.
int64_t window_size(int64_t in, int64_t before, int64_t after, int64_t kernel, int64_t stride) {
  const int64_t room = in + before + after - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

std::vector<Attribute> window_attributes(const KernelWindow& w) {
  return {{"kernel_shape", std::vector<int64_t>{w.kernel_h, w.kernel_w}},
          {"pads", std::vector<int64_t>{w.top, w.left, w.bottom, w.right}},
          {"strides", std::vector<int64_t>{w.stride, w.stride}}};
}

}  // namespace

KernelWindow window(int64_t kernel, int64_t stride, int64_t pad, int64_t groups) {
  return {.kernel_h = kernel,
          .kernel_w = kernel,
          .stride = stride,
          .top = pad,
          .left = pad,
          .bottom = pad,
          .right = pad,
          .groups = groups};
}

Val Net::conv(const std::string& name, Val x, int64_t features, const KernelWindow& w) {
  const Shape in = shape(x);
  const int64_t h = window_size(in[2], w.top, w.bottom, w.kernel_h, w.stride);
  const int64_t wide = window_size(in[3], w.left, w.right, w.kernel_w, w.stride);
  if (h < 1 || wide < 1)
    fail(name, "the picture is too small here (" + shape_text(in) + "); give a larger one");
  const Shape out = {in[0], features, std::max<int64_t>(h, 1), std::max<int64_t>(wide, 1)};
  const int64_t fan_in = in[1] / w.groups * w.kernel_h * w.kernel_w;
  const Val filter = weight(
      name + ".weight", {.shape = {features, in[1] / w.groups, w.kernel_h, w.kernel_w}, .fan_in = fan_in});
  auto attributes = window_attributes(w);
  attributes.push_back({"group", w.groups});
  const double flops = 2 * static_cast<double>(elements(out)) * static_cast<double>(fan_in);
  const Val y = add("Conv", name, {x, filter}, out, std::move(attributes), {.flops = flops});
  if (w.groups > 1 && status_.ok()) nodes_.back().type = "GroupConvolution";
  return y;
}

Val Net::bias(const std::string& name, Val x, size_t axis) {
  Shape wide(shape(x).size() - axis, 1);
  wide[0] = dim(x, axis);
  return add(name, x, weight(name + ".bias", {.shape = wide, .fill = Fill::kAroundZero}));
}

Val Net::batch_norm(const std::string& name, Val x, float epsilon) {
  const Shape c = {dim(x, 1)};
  const Val gamma = weight(name + ".weight", {.shape = c, .fill = Fill::kAroundOne});
  const Val beta = weight(name + ".bias", {.shape = c, .fill = Fill::kAroundZero});
  const Val mean = weight(name + ".running_mean", {.shape = c, .fill = Fill::kAroundZero, .trained = 0});
  const Val variance = weight(name + ".running_var", {.shape = c, .fill = Fill::kAroundOne, .trained = 0});
  return add("BatchNormalization", name, {x, gamma, beta, mean, variance}, shape(x), {{"epsilon", epsilon}});
}

Val Net::pool(const char* onnx_type, const std::string& name, Val x, const KernelWindow& w) {
  const Shape in = shape(x);
  const Shape out = {in[0], in[1], window_size(in[2], w.top, w.bottom, w.kernel_h, w.stride),
                     window_size(in[3], w.left, w.right, w.kernel_w, w.stride)};
  if (out[2] < 1 || out[3] < 1) {
    fail(name, "the picture is too small here (" + shape_text(in) + "); give a larger one");
    return x;
  }
  const auto flops = static_cast<double>(elements(out) * w.kernel_h * w.kernel_w);
  return add(onnx_type, name, {x}, out, window_attributes(w), {.flops = flops});
}

Val Net::cast(const std::string& name, Val x) {
  return add("Cast", name, {x}, shape(x), {{"to", internal::onnx_type_of(float_type_)}});
}

Val Net::binary(const char* onnx_type, const std::string& name, Val a, Val b) {
  return add(onnx_type, name, {a, b}, broadcast(shape(a), shape(b)));
}

Val Net::matmul(const std::string& name, Val a, Val b) {
  const Shape &sa = shape(a), &sb = shape(b);
  Shape out = broadcast(Shape(sa.begin(), sa.end() - 2), Shape(sb.begin(), sb.end() - 2));
  out.push_back(sa[sa.size() - 2]);
  out.push_back(sb.back());
  const double flops = 2 * static_cast<double>(elements(out)) * static_cast<double>(sa.back());
  return add("MatMul", name, {a, b}, out, {}, {.flops = flops});
}

Val Net::linear(const std::string& name, Val x, int64_t features, bool with_bias) {
  const int64_t in = shape(x).back();
  const Val product = matmul(name, x, weight(name + ".weight", {.shape = {in, features}, .fan_in = in}));
  return with_bias ? bias(name + ".add", product, shape(product).size() - 1) : product;
}

Val Net::einsum(const std::string& name, const std::string& equation, Val a, Val b, Shape out, double macs) {
  return add("Einsum", name, {a, b}, std::move(out), {{"equation", equation}}, {.flops = 2 * macs});
}

Val Net::softmax(const std::string& name, Val x, int64_t axis) {
  return add("Softmax", name, {x}, shape(x), {{"axis", axis}});
}

Val Net::reduce_mean(const std::string& name, Val x, std::vector<int64_t> axes, bool keep) {
  Shape out;
  for (size_t i = 0; i < shape(x).size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced)
      out.push_back(dim(x, i));
    else if (keep)
      out.push_back(1);
  }
  return add("ReduceMean", name, {x}, out, {{"axes", std::move(axes)}, {"keepdims", int64_t{keep}}},
             {.flops = static_cast<double>(elements(shape(x)))});
}

Val Net::concat(const std::string& name, const std::vector<Val>& parts, size_t axis) {
  Shape out = shape(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) out[axis] += dim(parts[i], axis);
  return add("Concat", name, parts, out, {{"axis", static_cast<int64_t>(axis)}});
}

std::vector<Val> Net::split(const std::string& name, Val x, int64_t parts, size_t axis) {
  Shape out = shape(x);
  if (out[axis] % parts != 0)
    fail(name, std::to_string(out[axis]) + " does not divide into " + std::to_string(parts) + " parts");
  out[axis] /= parts;
  const auto count = static_cast<size_t>(parts);
  const Val sizes = ints(std::vector<int64_t>(count, out[axis]));
  return add("Split", name, {x, sizes}, std::vector<Shape>(count, out),
             {{"axis", static_cast<int64_t>(axis)}}, {});
}

Val Net::slice(const std::string& name, Val x, size_t axis, int64_t begin, int64_t end) {
  Shape out = shape(x);
  out[axis] = end - begin;
  const int64_t bytes = tensor_bytes(float_type_, out).value_or(0);
  return add("Slice", name, {x, ints({begin}), ints({end}), ints({static_cast<int64_t>(axis)}), ints({1})},
             out, {}, {.bytes = 2 * bytes});
}

Val Net::reshape(const std::string& name, Val x, Shape out) {
  if (elements(out) != elements(shape(x)))
    fail(name, shape_text(shape(x)) + " cannot become " + shape_text(out));
  const Val sizes = ints(out);
  return add("Reshape", name, {x, sizes}, std::move(out));
}

Val Net::transpose(const std::string& name, Val x, std::vector<int64_t> permutation) {
  Shape out;
  for (const int64_t axis : permutation) out.push_back(dim(x, static_cast<size_t>(axis)));
  return add("Transpose", name, {x}, out, {{"perm", std::move(permutation)}});
}

Val Net::gather(const std::string& name, Val table, Val indices, size_t axis) {
  Shape out(shape(table).begin(), shape(table).begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), shape(indices).begin(), shape(indices).end());
  out.insert(out.end(), shape(table).begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape(table).end());
  const int64_t bytes = 2 * tensor_bytes(float_type_, out).value_or(0) + 8 * elements(shape(indices));
  return add("Gather", name, {table, indices}, out, {{"axis", static_cast<int64_t>(axis)}}, {.bytes = bytes});
}

Val Net::pad(const std::string& name, Val x, std::vector<int64_t> before, std::vector<int64_t> after) {
  Shape out = shape(x);
  for (size_t i = 0; i < out.size(); ++i) out[i] += before[i] + after[i];
  std::vector<int64_t> pads = std::move(before);
  pads.insert(pads.end(), after.begin(), after.end());
  return add("Pad", name, {x, ints(std::move(pads))}, out);
}

}  // namespace heddle::zoo
