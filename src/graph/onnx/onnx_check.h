// Checks of an ONNX file before it reaches OpenVINO's importer, which trusts parts of its input.
#pragma once

#include <map>
#include <string>

#include "heddle/base/status.h"
#include "onnx_file.h"

namespace heddle::internal {

using FileSizes = std::map<std::string, int64_t>;  // by location, as the model has it

// Checks names, wiring, operators, types, sizes and external data. External data must lie in `folder`, the
// model's. Returns the external files. O(size of the structure).
Result<FileSizes> check_onnx(const OnnxModel& model, const std::string& folder);

// One tensor (initializer or attribute): type, dimensions, amount of data.
Status check_tensor(const OnnxTensor& tensor);
// Checks that ONNX has the type.
Status check_element_type(int64_t type);
std::string element_type_name(int64_t type);  // "float16"
// Unsupported if a tensor or a declared value has an element type that OpenVINO does not have.
Status check_openvino_types(const OnnxGraph& graph);
// True for forms of Resize that OpenVINO computes otherwise than ONNX defines them (the corpus's reference outputs show
// it). `rounds`: so are aligned corners, since its size may be rounded.
bool is_other_resize(const OnnxNode& node, bool rounds);
// Checks one standard operator against its schema: known, number of inputs, required attributes.
Status check_operator(const OnnxNode& node, int64_t opset);
// True if the standard operator is the same in both opsets.
bool same_operator(std::string_view name, int64_t opset, int64_t other);
// The newest version of the standard operators in the table.
int64_t newest_standard_opset();

// Checks references to external files; caches the files' sizes.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}
  Status check(const OnnxTensor& tensor);
  const FileSizes& sizes() const { return sizes_; }

 private:
  Result<int64_t> file_size(const std::string& location);
  std::string folder_;
  FileSizes sizes_;
};

}  // namespace heddle::internal
