// The networks that the papers plan, described once and built either as a Heddle graph, at once and without
// weights, or as an ONNX file. docs/generators.md lists them.
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
  std::string source;            // the network's paper, and which of Heddle's papers plan it
  std::vector<ZooParam> params;  // beside these, every model takes dtype=f32 or f16 (default f32)
};

// All models, in the order of the documentation.
std::span<const ZooEntry> zoo_models();

// Values for some of an entry's parameters; the others keep their defaults.
using ZooParams = std::map<std::string, std::string>;
// From "key=value" texts. Whether a model has such a parameter is checked where it is built.
Result<ZooParams> parse_zoo_params(const std::vector<std::string>& texts);

// One op per ONNX node (the same that an import of the ONNX file gives), with flops, bytes and parameters.
// Instant for any size, since there are no weight values. Fails, naming what exists, on an unknown name or
// parameter.
Result<std::shared_ptr<const Graph>> build_zoo_graph(const std::string& name, const ZooParams& params = {});

// What publications state of a network.
struct ZooSize {
  int64_t parameters = 0;  // trained numbers, shared ones once; no running statistics or masks
  double macs = 0;         // multiply-accumulates of convolutions and matrix products
  int64_t ops = 0;
};
Result<ZooSize> zoo_size(const std::string& name, const ZooParams& params = {});

struct ZooOnnxOptions {
  // False: each weight is a ConstantOfShape node, so that the file of the largest model is small and
  // importing it allocates no weights; a runtime that compiles it does. True: random initializers, scaled so
  // that signals neither vanish nor blow up; such a file may be executed and compared.
  bool random_weights = false;
  uint64_t seed = 1;
};
// Writes the model as one .onnx file (opset 17), atomically. Fails when weights were asked for and the file
// would pass the 2 GiB that a protobuf message can have.
Status write_zoo_onnx(const std::string& name, const ZooParams& params, const std::string& path,
                      const ZooOnnxOptions& options = {});

}  // namespace heddle
