// What must hold before an ONNX file reaches OpenVINO's importer, which trusts its input in places.
#pragma once

#include <string>

#include "heddle/base/status.h"
#include "onnx_file.h"

namespace heddle::internal {

// Names, wiring, operators, types, sizes and external data. `folder` is the model's: external data must lie
// in it. `external_bytes` is set to the sum of the external files' sizes, each file once. O(size of the
// structure).
Status check_onnx(const OnnxModel& model, const std::string& folder, int64_t* external_bytes);

// One tensor (initializer or attribute): type, dimensions, amount of data.
Status check_tensor(const OnnxTensor& tensor);
// A type that OpenVINO can hold; the error names it.
Status check_element_type(int64_t type);
// One standard operator against its schema: known, enough inputs, none too many, required attributes.
Status check_operator(const OnnxNode& node, int64_t opset);
// The newest set of standard operators that the table knows.
int64_t newest_standard_opset();

// Keeps the sizes of external files that were seen already.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}
  Status check(const OnnxTensor& tensor);
  int64_t total_bytes() const;

 private:
  Result<int64_t> file_size(const std::string& location);
  std::string folder_, real_folder_;
  std::vector<std::pair<std::string, int64_t>> sizes_;
};

}  // namespace heddle::internal
