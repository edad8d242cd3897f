// Inputs on which the error of narrower types is measured.
#include <algorithm>
#include <filesystem>

#include "heddle/base/spelling.h"
#include "heddle/graph/model.h"
#include "inputs.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEndings[] = {".npy", ".pb", ".ppm"};
constexpr size_t kMostSamples = 10'000;

bool is_tensor_file(const fs::path& path) {
  return std::ranges::find(kEndings, path.extension().string()) != std::end(kEndings);
}

// In the order of their names, so that samples have the same order everywhere.
Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    entries.push_back(it->path());
  }
  if (error) return invalid_input(folder.string() + ": cannot be read as a folder: " + error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// A folder with a file for each input: NAME or input_I, with one of the endings.
Result<std::vector<TensorValue>> sample_in(const fs::path& folder, const Graph& graph) {
  std::vector<TensorValue> sample;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Tensor& tensor = graph.tensor(graph.inputs()[i]);
    std::string found;
    for (const std::string& name : {tensor.name, "input_" + std::to_string(i)}) {
      for (const char* ending : kEndings) {
        const fs::path path = folder / (name + ending);
        std::error_code error;
        if (found.empty() && fs::is_regular_file(path, error)) found = path.string();
      }
    }
    if (found.empty())
      return invalid_input(folder.string() + ": has no file for the input '" + tensor.name + "'; expected '" +
                           tensor.name + ".npy' or 'input_" + std::to_string(i) + ".pb'");
    HEDDLE_ASSIGN_OR_RETURN(auto value, read_input(found, tensor));
    sample.push_back(std::move(value));
  }
  return sample;
}

Result<std::vector<std::vector<TensorValue>>> samples_in(const fs::path& folder, const Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const auto entries, entries_of(folder));
  std::vector<std::vector<TensorValue>> samples;
  for (const fs::path& path : entries) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      HEDDLE_ASSIGN_OR_RETURN(auto sample, sample_in(path, graph));
      samples.push_back(std::move(sample));
    } else if (is_tensor_file(path)) {
      if (graph.inputs().size() != 1)
        return invalid_input(path.string() + ": the model has " + counted(graph.inputs().size(), "input") +
                             "; give each sample a folder with a file for each input");
      HEDDLE_ASSIGN_OR_RETURN(auto value, read_input(path.string(), graph.tensor(graph.inputs()[0])));
      samples.emplace_back().push_back(std::move(value));
    }
    if (samples.size() > kMostSamples)
      return invalid_input(folder.string() + ": has more than " + std::to_string(kMostSamples) +
                           " samples; give fewer");
  }
  if (samples.empty())
    return invalid_input(folder.string() + ": has no samples; expected files that end in .npy, .pb or .ppm");
  return samples;
}

// Of ONNX's model zoo and tests: test_data_set_N/input_I.pb beside the model.
std::vector<std::vector<TensorValue>> beside_model(const Model& model) {
  std::vector<std::vector<TensorValue>> samples;
  const auto entries = entries_of(fs::path(model.path()).parent_path());
  if (!entries.ok()) return samples;
  for (const fs::path& path : *entries) {
    if (!path.filename().string().starts_with("test_data_set_")) continue;
    // Those for other shapes say nothing here.
    auto sample = sample_in(path, *model.graph());
    if (sample.ok()) samples.push_back(std::move(*sample));
  }
  return samples;
}

}  // namespace

Result<std::vector<std::vector<TensorValue>>> calibration_inputs(const Model& model,
                                                                 const CalibrationOptions& options) {
  const Graph& graph = *model.graph();
  if (!options.folder.empty()) return samples_in(options.folder, graph);
  auto samples = beside_model(model);
  for (int i = 0; i < options.random; ++i) {
    InputOptions inputs;
    inputs.seed = options.seed + static_cast<uint64_t>(i);
    HEDDLE_ASSIGN_OR_RETURN(auto sample, make_inputs(graph, inputs));
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<std::vector<std::vector<TensorValue>>> calibration_inputs(const Model& model,
                                                                 CalibrationOptions options,
                                                                 const std::string& name) {
  std::error_code error;
  const fs::path own = fs::path(options.folder) / name;
  if (!options.folder.empty() && fs::is_directory(own, error)) options.folder = own.string();
  return calibration_inputs(model, options);
}

}  // namespace heddle
