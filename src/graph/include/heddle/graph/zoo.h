// The networks that the papers plan. Each is described once and built as a Heddle graph (instantly, without
// weights) or as an ONNX file. docs/generators.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

struct ZooParam {
  std::string name;  // "batch", "seq", "image", "layers", ...
  std::string description;
  int64_t default_value = 0, min = 0, max = 0;
};

struct ZooEntry {
  std::string name;  // "resnet-50"
  std::string description;
  std::string source;            // the network's paper, and the Heddle papers that plan it
  std::vector<ZooParam> params;  // in addition, every model takes dtype=f32 or f16 (default f32)
};

// All models, in the order of the documentation.
std::span<const ZooEntry> zoo_models();

// Values for some of an entry's parameters; the others keep their defaults.
using ZooParams = std::map<std::string, std::string>;
// Parses "key=value" texts. build_zoo_graph() checks whether the model has such a parameter.
Result<ZooParams> parse_zoo_params(const std::vector<std::string>& texts);

// One op per ONNX node, as an import of the ONNX file gives, with flops, bytes and parameters. Instant for
// any size, since there are no weight values. Fails on an unknown name or parameter; the message lists the
// known ones.
Result<std::shared_ptr<const Graph>> build_zoo_graph(const std::string& name, const ZooParams& params = {});

// Sizes as publications state them.
struct ZooSize {
  int64_t parameters = 0;  // trained numbers, shared ones once; without running statistics and masks
  double macs = 0;         // multiply-accumulates of convolutions and matrix products
  int64_t ops = 0;
};
Result<ZooSize> zoo_size(const std::string& name, const ZooParams& params = {});

struct ZooOnnxOptions {
  // False: each weight is a ConstantOfShape node. The file stays small and importing it allocates no weights,
  // but a runtime that compiles it does. True: random initializers, scaled so that signals neither vanish nor
  // blow up; such a file can be executed and its outputs compared.
  bool random_weights = false;
  uint64_t seed = 1;
  // Of the .onnx file; at most a protobuf message's limit. Random weights that do not fit are external data.
  uint64_t most_file_bytes = (uint64_t{1} << 31) - 1;
};
// Writes the model as an .onnx file (opset 17), atomically, and before it weights that do not fit into it: PATH.data
// beside it. Gives the path of these; empty: there are none. Memory holds the .onnx file, not the weights beside it.
Result<std::string> write_zoo_onnx(const std::string& name, const ZooParams& params, const std::string& path,
                                   const ZooOnnxOptions& options = {});

}  // namespace heddle
