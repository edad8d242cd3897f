// Model::load(): map the file, check it, try the import in a child process, convert, build the graph.
#include "heddle/graph/model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <openvino/core/version.hpp>
#include <thread>

#include "heddle/base/content_hash.h"
#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/base/log.h"
#include "heddle/base/mapped_file.h"
#include "heddle/base/spelling.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/units.h"
#include "heddle/graph/model_content.h"
#include "import_record.h"
#include "model_impl.h"
#include "onnx_check.h"
#include "openvino_reader.h"

namespace heddle {
namespace {

// In addition to the weights, which are mapped or copied once.
constexpr int64_t kProbeMemory = int64_t{4} << 30;
constexpr size_t kWorthAThread = 16 << 20;
// An import that leaves the weights in the file takes about 30 ms, whatever their size; SHA-256 as long for this.
constexpr size_t kMostMappedBytesRecorded = 64 << 20;
// Of a model's other files, that are read for its hash: files may be sparse.
constexpr int64_t kMostOtherBytes = int64_t{64} << 30;

// Files may be sparse, so their size alone is no limit.
int64_t probe_memory(int64_t model_bytes) {
  const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return std::min(kProbeMemory + 2 * std::min(model_bytes, machine), std::max(kProbeMemory, machine / 4 * 3));
}

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

// Results of reading the file, apart from its conversion.
struct Examined {
  std::optional<internal::OnnxContent> onnx;
  int64_t bytes = 0;                          // with external data or weights
  std::map<std::string, std::string> others;  // the model's other files: path by name
  bool all_files = true;                      // `others` has all of them
  std::vector<std::string> files;             // the model's path and those of `others`
  std::string state;                          // files_state() of these before they were read
  uint64_t hash = 0;
};

// Checks the file's structure and finds the model's other files.
Status check_file(const std::string& path, std::string_view bytes, const internal::InputValues& values,
                  Examined& e) {
  static constexpr std::array<std::string_view, 5> kOthers = {".xml", ".pdmodel", ".pb", ".tflite", ".json"};
  namespace fs = std::filesystem;
  const std::string extension = lower_extension(path);
  e.bytes = static_cast<int64_t>(bytes.size());
  if (extension == ".onnx") {
    HEDDLE_ASSIGN_OR_RETURN(e.onnx, internal::read_onnx(bytes, values));
    HEDDLE_ASSIGN_OR_RETURN(const auto files, internal::check_onnx(e.onnx->model, folder_of(path)));
    for (const auto& [location, size] : files) {
      e.others[location] = fs::path(folder_of(path)) / location;
      if (__builtin_add_overflow(e.bytes, size, &e.bytes)) return invalid_input("its files are too large");
    }
    if (e.onnx->rewritten != nullptr && !files.empty())
      return unsupported(
          values.empty()
              ? "has functions, and weights in other files; inline the functions first (onnx.inliner)"
              : "has weights in other files; --value needs them in the .onnx file");
    return {};
  }
  if (!values.empty()) return unsupported("--value is for inputs of .onnx files only");
  if (std::find(kOthers.begin(), kOthers.end(), extension) == kOthers.end()) {
    return unsupported("the extension " + quote_text(extension) +
                       " is not known; expected .onnx, .xml (OpenVINO), .pdmodel, .pb or .tflite");
  }
  if (bytes.empty()) return invalid_input("the file is empty");
  // The weights beside models of OpenVINO and PaddlePaddle. Of TensorFlow's many files only the first is known.
  const auto beside = [&path](const char* other) { return fs::path(path).replace_extension(other).string(); };
  std::error_code error;
  for (const char* const other : {".bin", ".pdiparams"})
    if (fs::exists(beside(other), error)) e.others[other] = beside(other);
  e.all_files = !fs::exists(beside(".index"), error);
  const auto weights = fs::file_size(beside(".bin"), error);
  if (!error && __builtin_add_overflow(e.bytes, static_cast<int64_t>(weights), &e.bytes))
    return invalid_input("its files are too large");
  return {};
}

uint64_t hash_of(const MappedFile& file) {
  // Faulting in a page takes as long as hashing it, and both are a large part of a big model's import.
  std::jthread ahead;
  try {
    if (file.bytes().size() >= kWorthAThread) ahead = std::jthread([&file] { file.populate(); });
  } catch (const std::system_error&) {
    // Without another thread it takes longer.
  }
  return content_hash(file.bytes());
}

// Of one of the model's other files; beyond `left` bytes of them only its size counts.
Result<uint64_t> hash_of_other(const std::string& path, int64_t& left) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > static_cast<uint64_t>(left)) return size;
  HEDDLE_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path, left));
  left -= static_cast<int64_t>(file.bytes().size());
  return hash_of(file);
}

Result<Examined> examine(const std::string& path, const MappedFile& file,
                         const internal::InputValues& values = {}) {
  Examined e;
  HEDDLE_RETURN_IF_ERROR(check_file(path, file.bytes(), values, e));
  e.files = {path};
  for (const auto& [name, other] : e.others) e.files.push_back(other);
  e.state = files_state(e.files);
  Hasher hasher;
  hasher.number(hash_of(file)).number(static_cast<uint64_t>(e.bytes));
  int64_t left = kMostOtherBytes;
  std::map<std::string, uint64_t> known;  // one file may have many names
  for (size_t i = 1; i < e.files.size(); ++i) {
    const auto [hash, is_new] = known.try_emplace(files_state(std::span(&e.files[i], 1)));
    if (is_new) {
      HEDDLE_ASSIGN_OR_RETURN(hash->second, with_context(hash_of_other(e.files[i], left), e.files[i]));
    }
    hasher.number(hash->second);
  }
  e.hash = hasher.value();
  return e;
}

// True when the whole model is in this one file.
bool is_alone(const Examined& examined) { return examined.others.empty() && examined.all_files; }

// True if the batch size is that of an input: a model's own may be fixed.
bool has_batch(const Graph& graph, int64_t batch) {
  return std::ranges::any_of(graph.inputs(), [&](TensorId id) {
    const Shape& shape = graph.tensor(id).shape;
    return !shape.empty() && shape[0] == batch;
  });
}

std::string values_text(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) text += (text.empty() ? "" : ",") + fmt::format("{}", v);
  return text;
}

std::vector<std::string> notes_about(const internal::ReadModel& read, const Graph& graph) {
  std::vector<std::string> notes;
  if (!read.assumed.empty())
    notes.push_back("the first dimension of " + join_names(read.assumed) +
                    " is not given: batch size 1 is assumed (--batch or --shape sets another)");
  if (!read.by_run.empty())
    notes.push_back(
        "sizes of " + join_names(read.by_run) +
        " were found by running the model on sample inputs: a request that gives other sizes is refused");
  for (const auto& s : read.sized) {
    const Tensor& output = graph.tensor(graph.outputs()[s.output]);
    notes.push_back("the size of output " + quote_text(output.name) + " depends on data: it is at most " +
                    shape_text(output.shape) + ", and the output " +
                    quote_text(graph.tensor(graph.outputs()[s.shape]).name) + " has its shape");
  }
  return notes;
}

}  // namespace

bool is_untried(const Error& error) { return error.code() == Code::kIo || error.code() == Code::kCancelled; }

void prepare_import() { internal::load_onnx_frontend(); }

Result<ModelContent> model_content(const std::string& path, int64_t max_file_bytes) {
  HEDDLE_ASSIGN_OR_RETURN(const auto file, with_context(MappedFile::open(path, max_file_bytes), path));
  HEDDLE_ASSIGN_OR_RETURN(const auto examined, with_context(examine(path, file), path));
  return ModelContent{examined.hash, examined.files, examined.all_files, examined.state};
}

Model::Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const std::string& path, const ImportOptions& options) {
  auto model = load_unnamed(path, options, {});
  // Only what was tried, and refused, may be another model with the values that its shapes determine.
  if (!model.ok() && !is_untried(model.error()) && lower_extension(path) == ".onnx")
    model = load_determined(path, options, model.error());
  if (!model.ok() && model.error().code() == Code::kInvalidInput && lower_extension(path) == ".xml") {
    const auto weights = std::filesystem::path(path).replace_extension(".bin");
    if (!file_exists(weights.string()))
      model = invalid_input(model.error().to_string() + "; its weights would be in " +
                            quote_text(weights.filename().string()) + ", which is not there");
  }
  return with_context(std::move(model), path);
}

Result<std::shared_ptr<const Model>> Model::load_determined(const std::string& path,
                                                            const ImportOptions& options,
                                                            const Error& failed) {
  const auto file = MappedFile::open(path, options.max_file_bytes);
  if (!file.ok()) return failed;
  const auto onnx = internal::parse_onnx(file->bytes());
  if (!onnx.ok() || !onnx->functions.empty()) return failed;
  auto determined = internal::determined_values(*onnx);
  for (const auto& [name, given] : options.values) determined.erase(name);
  if (determined.empty()) return failed;
  ImportOptions with = options;
  with.values.insert(determined.begin(), determined.end());
  auto model = load_unnamed(path, with, determined);
  if (!model.ok()) return failed;
  // The values are right only if the model has the declared shapes with them.
  for (const auto& output : onnx->graph.outputs) {
    const TensorId id = (*model)->find_onnx_tensor(std::string(output.name));
    if (!id.valid() || !output.has_shape) continue;
    const Shape& shape = (*model)->graph()->tensor(id).shape;
    if (shape.size() != output.dims.size()) return failed;
    for (size_t d = 0; d < shape.size(); ++d)
      if (output.dims[d] >= 0 && output.dims[d] != shape[d]) return failed;
  }
  return model;
}

Result<std::shared_ptr<const Model>> Model::load_unnamed(
    const std::string& path, const ImportOptions& options,
    const std::map<std::string, std::vector<double>>& determined) {
  if (options.split_bytes < 0)
    return invalid_input("parameters are to be split at " + std::to_string(options.split_bytes) +
                         " bytes, expected at least 0");
  HEDDLE_ASSIGN_OR_RETURN(auto file, MappedFile::open(path, options.max_file_bytes));
  HEDDLE_ASSIGN_OR_RETURN(const Examined examined, examine(path, file, options.values));
  const auto* onnx = examined.onnx ? &examined.onnx->model : nullptr;

  std::optional<std::string> skeleton;
  const std::string* hollow = nullptr;  // what is converted in place of the file
  // The importer maps only weights next to the model, after resolving links; model caches are full of links.
  std::string source = path;
  if (onnx != nullptr && examined.onnx->rewritten != nullptr) {
    hollow = examined.onnx->rewritten.get();
  } else if (options.map_weights && onnx != nullptr && is_alone(examined)) {
    std::error_code error;
    const auto real = std::filesystem::canonical(path, error);
    if (error) return io_error("cannot be found any more: " + error.message());
    source = real.string();
    HEDDLE_ASSIGN_OR_RETURN(skeleton, internal::onnx_skeleton(file.bytes(), real.filename().string()));
    hollow = &*skeleton;
  }

  std::shared_ptr<Model> model(new Model());
  auto impl = std::make_shared<Impl>();
  // OpenVINO's importer is native code over untrusted data: run it in a child process first.
  const bool recorded = examined.all_files && (!skeleton || file.bytes().size() <= kMostMappedBytesRecorded);
  internal::ImportRecord record(
      {path, file, examined.hash, examined.others, examined.files, examined.state, recorded}, options);
  const auto read = [&] {
    return internal::read_with_regions({source, onnx, hollow}, options,
                                       examined.onnx ? &*examined.onnx : nullptr, is_alone(examined));
  };
  std::string trial = "without a trial, since it was imported before";
  if (!record.has()) {
    internal::ProbeLimits limits;
    limits.memory_bytes = probe_memory(examined.bytes);
    const Stopwatch watch;
    HEDDLE_RETURN_IF_ERROR(internal::probe(
        [&] {
          auto converted = read();
          Impl tried;
          if (!converted) return;
          if (options.split_bytes > 0) internal::split_weights(*converted->model, options.split_bytes);
          (void)internal::make_graph(converted->model, path, onnx, tried);
        },
        limits, {.start = [&record] { record.start(); }, .join = [&record] { record.join(); }}));
    trial = "after a trial in a child process of " + format_us(1e6 * watch.seconds());
  }
  const Stopwatch watch;
  HEDDLE_ASSIGN_OR_RETURN(const auto made, read());
  model->whole_ = made.model;
  try {
    const std::string name = std::filesystem::path(path).stem().string();
    auto apart = model->whole_;
    if (options.split_bytes > 0) {
      apart = model->whole_->clone();
      internal::split_weights(*apart, options.split_bytes);
    }
    HEDDLE_ASSIGN_OR_RETURN(model->graph_, internal::make_graph(apart, name, onnx, *impl));
    model->notes_ = notes_about(made, *model->graph_);
    for (const auto& [input, values] : options.values)
      model->notes_.push_back("the input " + quote_text(input) + " is a constant of the plan" +
                              (determined.contains(input)
                                   ? ": " + values_text(values) +
                                         ", which follows from the shapes that the file declares (--value "
                                         "sets another)"
                                   : " (--value)"));
    model->sized_outputs_ = made.sized;
    for (const auto& s : made.states) {
      const Graph& graph = *model->graph_;
      model->states_.push_back({graph.tensor(graph.inputs()[s.input]).name,
                                graph.tensor(graph.outputs()[s.output]).name, s.initial});
      const auto& state = model->states_.back();
      model->notes_.push_back("the variable " + quote_text(state.input) + " is an input and the output " +
                              quote_text(state.output) + " (heddle serve carries it from run to run)");
    }
  } catch (const std::exception& e) {
    return invalid_input("the model cannot be taken apart: " + internal::openvino_reason(e.what()));
  }
  // The importer mapped the file by path, so check that the path still names the same file.
  if (hollow != nullptr && !file.is_still(path))
    return invalid_input("was changed while it was read; try again");
  record.note();
  log_debug([&] {
    return fmt::format("{}: imported by OpenVINO {} in {} {}; {}", path,
                       ov::get_openvino_version().buildNumber, format_us(1e6 * watch.seconds()), trial,
                       counted(model->graph_->num_ops(), "op"));
  });
  model->file_hash_ = examined.hash;
  model->path_ = path;
  model->options_ = options;
  // Plans record the batch size that was assumed, and none that the model does not have.
  if (!made.assumed.empty()) model->options_.batch = 1;
  if (options.batch && *options.batch != 1 && !has_batch(*model->graph_, *options.batch)) {
    model->options_.batch.reset();
    model->notes_.push_back("no input takes a batch of " + std::to_string(*options.batch) +
                            ": their first dimensions are fixed, so --batch changes nothing");
  }
  model->impl_ = std::move(impl);
  return std::shared_ptr<const Model>(std::move(model));
}

TensorId Model::find_onnx_tensor(const std::string& name) const {
  const auto it = impl_->onnx_names.find(name);
  return it == impl_->onnx_names.end() ? TensorId() : it->second;
}

ImportOptions ImportOptions::at_batch(int64_t size) const {
  ImportOptions options = *this;
  options.batch = size;
  for (auto& [name, shape] : options.shapes)
    if (!shape.empty() && shape[0] == 1) shape[0] = size;
  return options;
}

}  // namespace heddle
