#include "heddle/graph/onnx_tensor.h"
#include "onnx_check.h"
#include "onnx_file.h"
#include "onnx_writer.h"

namespace heddle {
namespace {

constexpr int kModelGraph = 7, kGraphInitializer = 5;  // fields of ModelProto and GraphProto

}  // namespace

Result<OnnxTensorFile> parse_onnx_tensor(std::string_view bytes) {
  // The reader of models reads the tensor as a model's only initializer.
  internal::WireMessage graph, model;
  graph.text(kGraphInitializer, bytes);
  model.message(kModelGraph, graph);
  HEDDLE_ASSIGN_OR_RETURN(const auto parsed, internal::parse_onnx(model.bytes()));
  if (parsed.graph.initializers.size() != 1) return invalid_input("the file holds no tensor");
  const internal::OnnxTensor& tensor = parsed.graph.initializers.front();
  HEDDLE_RETURN_IF_ERROR(internal::check_tensor(tensor));
  OnnxTensorFile file;
  for (int k = 0; k <= static_cast<int>(DType::kString); ++k) {
    const auto type = static_cast<DType>(k);
    if (tensor.data_type > 0 && internal::onnx_type_of(type) == tensor.data_type) file.dtype = type;
  }
  file.shape.assign(tensor.dims.begin(), tensor.dims.end());
  const auto size = tensor_bytes(file.dtype, file.shape);
  if (file.dtype == DType::kUndefined || file.dtype == DType::kString || !size)
    return invalid_input("its elements have a type that inputs cannot have");
  if (tensor.external || !tensor.has_raw || static_cast<int64_t>(tensor.raw.size()) != *size)
    return invalid_input("its elements are not raw bytes; save them with onnx.numpy_helper.from_array");
  // The data's place in the message that was made here, as a place in the caller's bytes.
  file.data = bytes.substr(bytes.size() - (model.bytes().data() + model.bytes().size() - tensor.raw.data()),
                           tensor.raw.size());
  return file;
}

}  // namespace heddle
