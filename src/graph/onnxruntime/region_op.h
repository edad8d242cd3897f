// Nodes of an ONNX file as one op of an OpenVINO model, which ONNX Runtime computes.
#pragma once

#include <memory>
#include <mutex>
#include <openvino/op/op.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/onnxruntime_session.h"

namespace heddle::internal {

// A value at the border of a region.
struct RegionValue {
  std::string name;
  int type = 0;            // ONNX's number of the element type
  ov::PartialShape shape;  // a dimension is open if it differed between runs
};

// What a region computes. Immutable.
struct RegionProgram {
  std::string bytes;  // an ONNX file
  std::vector<RegionValue> inputs, outputs;
  std::vector<std::string> nodes;  // the names of the file's nodes
  std::string what;                // "node 'x' (Det)", for errors
  int64_t weight_bytes = 0;
  int64_t hash = 0;  // of `bytes`
};

// The type under which a graph has tensors of ONNX's element type: of equal meaning, or u8 for the bytes of an 8-bit
// type that OpenVINO does not have. Dynamic if there is none, so that such a value stays inside a region.
ov::element::Type region_type(int onnx_type);

// OpenVINO's CPU plugin replaces types that it does not compute in, on both sides of an op that it does not know. So
// inputs come in any type, and outputs have one of the plugin's own (f32, i32, i8, u8); region_outputs() converts them.
class OnnxRegion final : public ov::op::Op {
 public:
  OPENVINO_OP("OnnxRegion", "heddle")
  OnnxRegion(const ov::OutputVector& inputs, std::shared_ptr<const RegionProgram> program);

  const RegionProgram& program() const { return *program_; }
  // False if region_outputs() converts the output.
  bool has_final_type(size_t output) const;

  void validate_and_infer_types() override;
  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
  bool visit_attributes(ov::AttributeVisitor& visitor) override;
  bool has_evaluate() const override { return true; }
  // Random nodes differ from run to run.
  bool can_constant_fold(const ov::OutputVector&) const override { return false; }
  // Throws, or tells the thread's RegionFaults, if the library fails or an output has another size than the model was
  // imported with.
  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;

 private:
  Status run(ov::TensorVector& outputs, const ov::TensorVector& inputs) const;
  Result<const onnxruntime::Session*> session() const;

  std::shared_ptr<const RegionProgram> program_;
  // Made by the first run; it computes on the thread that calls it.
  mutable std::once_flag made_;
  mutable std::optional<Result<onnxruntime::SessionPtr>> session_;
};

// The region's op and its outputs in their own types.
ov::OutputVector region_outputs(const ov::OutputVector& inputs, std::shared_ptr<const RegionProgram> program);

}  // namespace heddle::internal
