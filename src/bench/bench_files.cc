#include "bench_files.h"

#include <filesystem>

#include "heddle/base/file.h"
#include "heddle/base/wheels.h"

namespace heddle::bench {
namespace {

namespace fs = std::filesystem;

// What leaves the size of its picture or its sound open gets a usual one.
ImportOptions usual_import(const std::string& name) {
  const auto has = [&name](std::string_view part) { return name.find(part) != std::string::npos; };
  ImportOptions usual;
  if (has("_det_")) usual.shapes = {{"x", {1, 3, 320, 320}}};
  if (has("_rec_")) usual.shapes = {{"x", {1, 3, 48, 320}}};
  if (has("_cls_")) usual.shapes = {{"x", {1, 3, 48, 192}}};
  if (has("silero_vad") && !has("_sequence") && !has("_openvino")) usual.shapes = {{"input", {1, 512}}};
  if (name == "silero_vad") {
    usual.shapes["state"] = {2, 1, 128};
    usual.values = {{"sr", {16000}}};
  }
  return usual;
}

Status add_models(const fs::path& place, std::vector<BenchModel>& models) {
  std::error_code error;
  std::vector<std::string> files = {place.string()};
  if (fs::is_directory(place, error)) {
    constexpr std::string_view kModels[] = {".onnx"};
    HEDDLE_ASSIGN_OR_RETURN(files, files_in(place.string(), kModels));
  }
  for (const fs::path file : files) {
    if (file.extension() != ".onnx") continue;
    const auto name = file.stem().string();
    models.push_back({.name = name, .path = file.string(), .place = {}, .import = usual_import(name)});
  }
  return {};
}

Result<std::vector<BenchModel>> find_models(const BenchOptions& options) {
  std::vector<BenchModel> models;
  for (const auto& place : options.models) HEDDLE_RETURN_IF_ERROR(add_models(place, models));
  if (options.models.empty()) {
    for (const char* folder : {"onnx/backend/test/data/light", "rapidocr_onnxruntime/models",
                               "rapidocr/models", "silero_vad/data"})
      if (const auto found = find_in_wheels(folder); found.ok())
        HEDDLE_RETURN_IF_ERROR(add_models(*found, models));
  }
  if (models.empty()) return not_found("found no .onnx models; name folders or files with --models");
  for (size_t m = 0; m < models.size(); ++m)
    models[m].place = std::to_string(m + 1) + "/" + std::to_string(models.size());
  return models;
}

}  // namespace

Status for_each_model(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows,
                      const std::function<Status(const BenchModel&)>& run) {
  HEDDLE_ASSIGN_OR_RETURN(const auto models, find_models(options));
  for (const BenchModel& model : models) {
    auto status = whole_instance(control, rows, [&] { return run(model); });
    if (!status.ok()) return std::move(status).error().with_context(model.name);
  }
  return {};
}

}  // namespace heddle::bench
