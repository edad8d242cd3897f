// The roofline: an op takes the longer of its arithmetic and its memory traffic. The table holds the share of
// each peak that ops of a type reach; docs/cost-model.md repeats it with the sources of the numbers.
#include <algorithm>
#include <array>
#include <string_view>

#include "heddle/cluster/catalogue.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/quantised.h"

namespace heddle {
namespace {

struct Efficiency {
  double compute;
  double memory;
};

struct TypeEfficiency {
  std::string_view type;
  Efficiency efficiency;
};

// Dense kernels first: a fused or coarsened op ("Convolution+Relu") is as efficient as its heaviest part, the
// first entry of this list that it contains.
constexpr std::array<TypeEfficiency, 22> kTypes = {{
    {"Convolution", {0.60, 0.70}},
    {"ConvolutionBackpropData", {0.50, 0.70}},
    {"Conv", {0.60, 0.70}},
    {"MatMul", {0.70, 0.75}},
    {"Gemm", {0.70, 0.75}},
    {"LSTMSequence", {0.35, 0.60}},
    {"GRUSequence", {0.35, 0.60}},
    {"LSTMCell", {0.30, 0.60}},
    {"GRUCell", {0.30, 0.60}},
    {"GroupConvolution", {0.20, 0.60}},
    {"GroupConvolutionBackpropData", {0.15, 0.60}},
    {"SoftMax", {0.10, 0.60}},
    {"Softmax", {0.10, 0.60}},
    {"MVN", {0.10, 0.60}},
    {"LRN", {0.10, 0.50}},
    {"MaxPool", {0.10, 0.60}},
    {"AvgPool", {0.10, 0.60}},
    {"Interpolate", {0.05, 0.40}},
    {"Gather", {0.05, 0.40}},
    {"Transpose", {0.05, 0.40}},
    {"Concat", {0.05, 0.60}},
    {"Split", {0.05, 0.60}},
}};
// Element-wise ops and all others stream their operands.
constexpr Efficiency kStreaming{0.10, 0.75};

bool has_part(std::string_view types, std::string_view part) {
  for (size_t begin = 0; begin <= types.size();) {
    const size_t end = std::min(types.find('+', begin), types.size());
    if (types.substr(begin, end - begin) == part) return true;
    begin = end + 1;
  }
  return false;
}

Efficiency efficiency_of(std::string_view type) {
  for (const auto& entry : kTypes) {
    if (has_part(type, entry.type)) return entry.efficiency;
  }
  return kStreaming;
}

// Operations per second: those of the device's precision, or of int8 for a quantised unit on hardware of the catalogue.
double rate_of(const Device& device, const Op& op) {
  const CatalogueDevice* row = is_int8(op) ? rated_by_catalogue(device) : nullptr;
  return row == nullptr ? device.peak_flops : std::max(device.peak_flops, row->int8_ops);
}

class Roofline final : public CostModel {
 public:
  std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                              const CostContext& context) const override {
    if (!(device.peak_flops > 0) || !(device.memory_bytes_per_s > 0)) return std::nullopt;
    double seconds = 0;
    for (OpId id : ops) {
      const Op& op = graph.op(id);
      const Efficiency e = efficiency_of(op.type);
      const double compute = op.flops / (rate_of(device, op) * e.compute);
      const double memory = static_cast<double>(op.bytes_accessed) / (device.memory_bytes_per_s * e.memory);
      seconds += std::max(compute, memory);
    }
    const double us = seconds * 1e6 / (device.speed * context.share) + device.op_overhead_us;
    return Cost{.us = us, .origin = Origin::kEstimated, .rel_spread = 0};
  }
};

}  // namespace

std::unique_ptr<CostModel> roofline_cost_model() { return std::make_unique<Roofline>(); }

}  // namespace heddle
