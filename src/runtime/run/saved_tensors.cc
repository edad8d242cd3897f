#include "heddle/runtime/saved_tensors.h"

#include <filesystem>
#include <span>
#include <system_error>

#include "heddle/base/file.h"
#include "tensor_files.h"

namespace heddle {

Status prepare_saving(const Graph& graph, const std::string& folder) {
  for (const auto tensors : {graph.inputs(), graph.outputs()})
    for (const TensorId id : tensors) {
      const Tensor& tensor = graph.tensor(id);
      if (!has_npy_type(tensor.dtype))
        return unsupported("tensor '" + tensor.name + "' is " + dtype_name(tensor.dtype) +
                           ", which .npy files cannot hold");
    }
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  return error ? Status(io_error(folder + ": " + error.message())) : Status();
}

Result<std::vector<std::string>> save_tensors(const RunTensors& tensors, const std::string& folder) {
  std::vector<std::string> names;
  const auto save = [&](const char* kind, std::span<const TensorValue> values) -> Status {
    for (size_t i = 0; i < values.size(); ++i) {
      names.push_back(kind + std::to_string(i) + ".npy");
      HEDDLE_ASSIGN_OR_RETURN(const std::string content, npy_content(values[i].view()));
      HEDDLE_RETURN_IF_ERROR(
          write_file_atomic((std::filesystem::path(folder) / names.back()).string(), content));
    }
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(save("input_", tensors.inputs));
  HEDDLE_RETURN_IF_ERROR(save("output_", tensors.outputs));
  return names;
}

}  // namespace heddle
