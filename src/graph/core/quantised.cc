#include "heddle/graph/quantised.h"

#include <algorithm>
#include <string_view>

#include "rebuilt.h"

namespace heddle {
namespace {

constexpr std::string_view kEnding = "+int8";
constexpr std::string_view kProducts[] = {"Convolution", "ConvolutionBackpropData", "GroupConvolution",
                                          "GroupConvolutionBackpropData", "MatMul"};
// Between a tensor of integers and its product: dequantisation, and ops that only move values.
constexpr std::string_view kPassing[] = {"Convert",       "Subtract",  "Multiply", "Reshape", "Transpose",
                                         "Squeeze",       "Unsqueeze", "Concat",   "Slice",   "Split",
                                         "VariadicSplit", "Pad",       "MaxPool"};

bool is_product(const Op& op) { return std::ranges::find(kProducts, op.type) != std::end(kProducts); }

// From floating point to 8 bits. An image that comes in 8 bits is no quantised tensor.
bool quantises(const Graph& model, const Op& op) {
  if (op.type != "Convert" || op.inputs.size() != 1 || op.outputs.size() != 1) return false;
  const DType from = model.tensor(op.inputs[0]).dtype, to = model.tensor(op.outputs[0]).dtype;
  return (from == DType::kF32 || from == DType::kF16 || from == DType::kBF16) &&
         (to == DType::kI8 || to == DType::kU8);
}

template <typename Visit>
void for_finest(const Op& unit, OpId id, const Visit& visit) {
  if (unit.members.empty()) visit(id);
  for (const OpId member : unit.members) visit(member);
}

}  // namespace

std::vector<bool> int8_products(const Graph& model) {
  std::vector<bool> quantised(model.num_tensors(), false), found(model.num_ops(), false);
  for (const OpId id : model.topological_order()) {
    const Op& op = model.op(id);
    const bool all = !op.inputs.empty() &&
                     std::ranges::all_of(op.inputs, [&](TensorId t) { return quantised[t.index()]; });
    if (all && is_product(op)) found[id.index()] = true;
    const bool passes = all && std::ranges::find(kPassing, op.type) != std::end(kPassing);
    if (passes || quantises(model, op))
      for (const TensorId t : op.outputs) quantised[t.index()] = true;
  }
  return found;
}

Result<std::shared_ptr<const Graph>> with_int8_types(const std::shared_ptr<const Graph>& units,
                                                     const Graph& model) {
  const std::vector<bool> int8 = int8_products(model);
  if (std::ranges::find(int8, true) == int8.end()) return units;
  size_t number = 0;
  return rebuilt(
      *units, [](const Param& p) { return p; }, [&](TensorId t) { return units->tensor(t); },
      [&](Op op) {
        bool any = false, all = true;
        for_finest(op, OpId(number++), [&](OpId id) {
          any = any || int8[id.index()];
          all = all && (int8[id.index()] || !is_product(model.op(id)));
        });
        if (any && all) op.type += kEnding;
        return op;
      });
}

bool is_int8(const Op& op) { return std::string_view(op.type).ends_with(kEnding); }

}  // namespace heddle
