// Model::load(): map, check, try in a child process, convert, take apart.
#include "heddle/graph/model.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>

#include "heddle/base/hash.h"
#include "heddle/base/spelling.h"
#include "mapped_file.h"
#include "model_graph.h"
#include "model_impl.h"
#include "model_probe.h"
#include "onnx_check.h"
#include "openvino_reader.h"

namespace heddle {
namespace {

// Beside the weights themselves, which are mapped or copied once.
constexpr int64_t kProbeMemory = int64_t{4} << 30;

std::string lower_extension(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct Source {
  std::optional<internal::OnnxModel> onnx;
  int64_t bytes = 0;  // with external data
};

Result<Source> check_source(const std::string& path, std::string_view bytes) {
  static constexpr std::array<std::string_view, 5> kOthers = {".xml", ".pdmodel", ".pb", ".tflite", ".json"};
  Source source;
  source.bytes = static_cast<int64_t>(bytes.size());
  const std::string extension = lower_extension(path);
  if (extension == ".onnx") {
    HEDDLE_ASSIGN_OR_RETURN(source.onnx, internal::parse_onnx(bytes));
    int64_t external = 0;
    HEDDLE_RETURN_IF_ERROR(internal::check_onnx(*source.onnx, folder_of(path), &external));
    source.bytes += external;
    return source;
  }
  if (std::find(kOthers.begin(), kOthers.end(), extension) == kOthers.end()) {
    return Error(Code::kUnsupported,
                 "the extension " + quote_text(extension) +
                     " is not known; expected .onnx, .xml (OpenVINO), .pdmodel, .pb or .tflite");
  }
  if (bytes.empty()) return Error(Code::kInvalidInput, "the file is empty");
  return source;
}

// Only these bytes of an OpenVINO model are in another file: the weights.
int64_t weights_bytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(std::filesystem::path(path).replace_extension(".bin"), error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

Model::Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const ImportOptions& options) {
  auto model = load_unnamed(path, options);
  if (!model) return std::move(model).error().with_context(path);
  return model;
}

Result<std::shared_ptr<const Model>> Model::load_unnamed(const std::string& path,
                                                         const ImportOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto file, internal::MappedFile::open(path, options.max_file_bytes));
  HEDDLE_ASSIGN_OR_RETURN(const Source source, check_source(path, file.bytes()));
  const auto* onnx = source.onnx ? &*source.onnx : nullptr;
  const int64_t bytes = source.bytes + (onnx == nullptr ? weights_bytes(path) : 0);

  std::shared_ptr<Model> model(new Model());
  auto impl = std::make_shared<Impl>();
  // OpenVINO's importer is native code over untrusted data: it goes first where it can do no harm.
  internal::ProbeLimits limits;
  limits.memory_bytes = kProbeMemory + 2 * bytes;
  HEDDLE_RETURN_IF_ERROR(internal::probe(
      [&] {
        auto converted = internal::read_openvino(path, options, onnx);
        Impl trial;
        if (converted) (void)internal::make_graph(*converted, path, onnx, trial);
      },
      limits));
  HEDDLE_ASSIGN_OR_RETURN(model->whole_, internal::read_openvino(path, options, onnx));
  try {
    const std::string name = std::filesystem::path(path).stem().string();
    HEDDLE_ASSIGN_OR_RETURN(model->graph_, internal::make_graph(model->whole_, name, onnx, *impl));
  } catch (const std::exception& e) {
    return Error(Code::kInvalidInput,
                 "the model cannot be taken apart: " + internal::openvino_reason(e.what()));
  }
  Hasher hasher;
  hasher.bytes(file.bytes().data(), file.bytes().size()).number(static_cast<uint64_t>(bytes));
  model->file_hash_ = hasher.value();
  model->path_ = path;
  model->options_ = options;
  model->impl_ = std::move(impl);
  return std::shared_ptr<const Model>(std::move(model));
}

TensorId Model::find_onnx_tensor(const std::string& name) const {
  const auto it = impl_->onnx_names.find(name);
  return it == impl_->onnx_names.end() ? TensorId() : it->second;
}

}  // namespace heddle
