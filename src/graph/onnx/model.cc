// Model::load(): map, check, try in a child process, convert, take apart.
#include "heddle/graph/model.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "heddle/base/content_hash.h"
#include "heddle/base/hash.h"
#include "heddle/base/mapped_file.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/model_content.h"
#include "imported_models.h"
#include "model_graph.h"
#include "model_impl.h"
#include "model_probe.h"
#include "model_split.h"
#include "onnx_check.h"
#include "onnx_skeleton.h"
#include "openvino_reader.h"

namespace heddle {
namespace {

// Beside the weights themselves, which are mapped or copied once.
constexpr int64_t kProbeMemory = int64_t{4} << 30;
constexpr size_t kWorthAThread = 16 << 20;

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

// All that is read of the file beside its conversion.
struct Examined {
  Source source;
  int64_t bytes = 0;  // with external data or weights
  uint64_t hash = 0;
};

Result<Examined> examine(const std::string& path, const MappedFile& file) {
  Examined e;
  HEDDLE_ASSIGN_OR_RETURN(e.source, check_source(path, file.bytes()));
  e.bytes = e.source.bytes + (e.source.onnx ? 0 : weights_bytes(path));
  // Getting at a page takes as long as hashing it, and either is much of a large model's import.
  std::thread ahead;
  if (file.bytes().size() >= kWorthAThread) ahead = std::thread([&file] { file.populate(); });
  const uint64_t content = content_hash(file.bytes());
  if (ahead.joinable()) ahead.join();
  Hasher hasher;
  hasher.number(content).number(static_cast<uint64_t>(e.bytes));
  e.hash = hasher.value();
  return e;
}

// Is everything in this one file?
bool is_alone(const Examined& examined, const MappedFile& file) {
  return examined.bytes == static_cast<int64_t>(file.bytes().size());
}

}  // namespace

void prepare_import() { internal::load_onnx_frontend(); }

Result<ModelContent> model_content(const std::string& path, int64_t max_file_bytes) {
  auto file = MappedFile::open(path, max_file_bytes);
  if (!file.ok()) return std::move(file).error().with_context(path);
  auto examined = examine(path, *file);
  if (!examined.ok()) return std::move(examined).error().with_context(path);
  return ModelContent{examined->hash, is_alone(*examined, *file)};
}

Model::Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const ImportOptions& options) {
  auto model = load_unnamed(path, options);
  if (!model) return std::move(model).error().with_context(path);
  return model;
}

Result<std::shared_ptr<const Model>> Model::load_unnamed(const std::string& path,
                                                         const ImportOptions& options) {
  if (options.split_bytes < 0)
    return Error(Code::kInvalidInput, "parameters are to be split at " + std::to_string(options.split_bytes) +
                                          " bytes, expected at least 0");
  HEDDLE_ASSIGN_OR_RETURN(auto file, MappedFile::open(path, options.max_file_bytes));
  HEDDLE_ASSIGN_OR_RETURN(const Examined examined, examine(path, file));
  const auto* onnx = examined.source.onnx ? &*examined.source.onnx : nullptr;

  std::optional<std::string> skeleton;
  // The importer maps weights of its folder only, and follows links: caches of models are full of them.
  std::string source = path;
  if (options.map_weights && onnx != nullptr && is_alone(examined, file)) {
    std::error_code error;
    const auto real = std::filesystem::canonical(path, error);
    if (error) return Error(Code::kIo, "cannot be found any more: " + error.message());
    source = real.string();
    HEDDLE_ASSIGN_OR_RETURN(skeleton, internal::onnx_skeleton(file.bytes(), real.filename().string()));
  }
  const std::string* hollow = skeleton ? &*skeleton : nullptr;

  std::shared_ptr<Model> model(new Model());
  auto impl = std::make_shared<Impl>();
  // OpenVINO's importer is native code over untrusted data: it goes first where it can do no harm.
  const uint64_t key = internal::import_key(examined.hash, options);
  if (!internal::was_imported(key)) {
    internal::ProbeLimits limits;
    limits.memory_bytes = kProbeMemory + 2 * examined.bytes;
    HEDDLE_RETURN_IF_ERROR(internal::probe(
        [&] {
          auto converted = internal::read_openvino(source, options, onnx, hollow);
          Impl trial;
          if (!converted) return;
          if (options.split_bytes > 0) internal::split_weights(**converted, options.split_bytes);
          (void)internal::make_graph(*converted, path, onnx, trial);
        },
        limits));
  }
  HEDDLE_ASSIGN_OR_RETURN(model->whole_, internal::read_openvino(source, options, onnx, hollow));
  try {
    const std::string name = std::filesystem::path(path).stem().string();
    auto apart = model->whole_;
    if (options.split_bytes > 0) {
      apart = model->whole_->clone();
      internal::split_weights(*apart, options.split_bytes);
    }
    HEDDLE_ASSIGN_OR_RETURN(model->graph_, internal::make_graph(apart, name, onnx, *impl));
  } catch (const std::exception& e) {
    return Error(Code::kInvalidInput,
                 "the model cannot be taken apart: " + internal::openvino_reason(e.what()));
  }
  // The importer has mapped the file by its path.
  if (hollow != nullptr && !file.is_still(path))
    return Error(Code::kInvalidInput, "was changed while it was read; try again");
  internal::note_imported(key);
  model->file_hash_ = examined.hash;
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
