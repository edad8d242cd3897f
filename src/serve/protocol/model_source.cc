#include "heddle/serve/model_source.h"

#include <algorithm>
#include <cfloat>
#include <filesystem>
#include <set>

#include "heddle/base/json.h"
#include "heddle/base/numbers.h"
#include "heddle/base/units.h"
#include "heddle/fleet/size_buckets.h"
#include "heddle/plan/plan_file.h"
#include "heddle/serve/served_model.h"
#include "protocol/model_config.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                  c == '_' || c == '-';
         });
}

// "3" to 3; 0: no version.
int64_t version_number(const std::string& text) {
  const int64_t n = parse_number<int64_t>(text).value_or(0);
  return n > 0 && text[0] != '0' ? n : 0;
}

// A file of shapes is beside the model's folder of versions.
Status read_varying(const JsonCursor& at, const fs::path& folder, VaryingSettings& varying) {
  if (at.has("buckets")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto buckets, at.at("buckets"));
    HEDDLE_ASSIGN_OR_RETURN(varying.buckets, buckets_from_json(buckets));
  }
  if (at.has("shapes_from")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto file, at.string_or("shapes_from", ""));
    HEDDLE_ASSIGN_OR_RETURN(varying.requests, read_shape_trace((folder / file).string()));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto most, at.int_or("bucket_count", varying.most_buckets, 1, kMostBuckets));
  varying.most_buckets = static_cast<int>(most);
  if (at.has("pad_values")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto pad, at.at("pad_values"));
    HEDDLE_RETURN_IF_ERROR(pad.check_object());
    for (const auto& [name, value] : pad.value().items()) {
      HEDDLE_ASSIGN_OR_RETURN(varying.pad[name], pad.member(name, value).as_number());
    }
  }
  if (at.has("padding")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto padding, at.at("padding"));
    if (padding.value().is_number()) {
      HEDDLE_ASSIGN_OR_RETURN(varying.padding_limit, padding.as_number(0, DBL_MAX));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const auto text, padding.as_string());
      const auto limit = parse_padding(text);
      if (!limit.ok()) return padding.error(limit.error().message());
      varying.padding_limit = *limit;
    }
  }
  return {};
}

// A time from 1us on, such as "50ms", that may be left out.
Status read_time(const JsonCursor& at, const char* name, double most_us, const char* expected, double& us) {
  if (!at.has(name)) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto time, at.at(name));
  HEDDLE_ASSIGN_OR_RETURN(const auto text, time.as_string());
  const auto given = parse_time_us(text);
  if (!given || !(*given >= 1) || *given > most_us)
    return time.error(std::string("expected a time from ") + expected);
  us = *given;
  return {};
}

Status read_settings(const fs::path& path, ModelSettings& settings) {
  HEDDLE_ASSIGN_OR_RETURN(const auto json, read_json_file(path.string()));
  const JsonCursor at(json);
  HEDDLE_RETURN_IF_ERROR(at.check_keys(
      {"shapes", "values", "buckets", "bucket_count", "shapes_from", "pad_values", "padding", "slo",
       "max_batch", "weight", "priority_levels", "default_priority_level", "state", "session_idle"}));
  HEDDLE_RETURN_IF_ERROR(read_varying(at, path.parent_path(), settings.varying));
  if (at.has("shapes")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto shapes, at.at("shapes"));
    if (!shapes.value().is_object()) return shapes.error("expected an object of shapes by input");
    for (const auto& [name, shape] : shapes.value().items()) {
      HEDDLE_ASSIGN_OR_RETURN(settings.shapes[name],
                              JsonCursor(shape, shapes.path() + "." + name).as_ints(1, int64_t{1} << 30));
    }
  }
  if (at.has("values")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto values, at.at("values"));
    if (!values.value().is_object()) return values.error("expected an object of lists of numbers by input");
    for (const auto& [name, list] : values.value().items()) {
      HEDDLE_ASSIGN_OR_RETURN(settings.values[name],
                              JsonCursor(list, values.path() + "." + name).as_numbers(-DBL_MAX, DBL_MAX));
    }
  }
  HEDDLE_RETURN_IF_ERROR(read_time(at, "slo", 3.6e9, "1us to 3600s, such as \"50ms\"", settings.slo_us));
  HEDDLE_RETURN_IF_ERROR(read_time(at, "session_idle", kMostSessionIdle_us, "1us to 168h, such as \"60s\"",
                                   settings.session_idle_us));
  if (at.has("state")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto state, at.at("state"));
    HEDDLE_RETURN_IF_ERROR(state.check_object());
    settings.state.clear();
    for (const auto& [input, value] : state.value().items()) {
      HEDDLE_ASSIGN_OR_RETURN(auto output, state.member(input, value).as_string());
      settings.state.emplace_back(input, std::move(output));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto batch, at.int_or("max_batch", settings.max_batch, 1, kMostServedBatch));
  settings.max_batch = static_cast<int>(batch);
  HEDDLE_ASSIGN_OR_RETURN(const auto levels,
                          at.int_or("priority_levels", settings.priority_levels, 0, kLastPriority - 1));
  settings.priority_levels = static_cast<int>(levels);
  HEDDLE_ASSIGN_OR_RETURN(const auto by_default, at.int_or("default_priority_level",
                                                           settings.default_priority, 0, kLastPriority - 1));
  settings.default_priority = static_cast<int>(by_default);
  if (levels > 0 ? by_default < 1 || by_default > levels : by_default != 0)
    return at.error("expected priority_levels and a default_priority_level from 1 to that");
  HEDDLE_ASSIGN_OR_RETURN(settings.weight, at.number_or("weight", settings.weight, 1e-6, 1e6));
  return {};
}

// The newest version of the model in this folder of a repository.
Result<ModelSource> find_in_folder(const fs::path& folder, const ModelSettings& defaults) {
  ModelSource source;
  source.name = folder.filename().string();
  source.settings = defaults;
  int64_t newest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto version = version_number(entry.path().filename().string());
    if (version <= newest || !entry.is_directory(error)) continue;
    for (const char* file : {"model.onnx", "model.xml"})
      if (fs::is_regular_file(entry.path() / file, error)) {
        newest = version;
        source.path = (entry.path() / file).string();
        break;
      }
  }
  if (newest == 0)
    return not_found(folder.string() +
                     ": has no VERSION/model.onnx; expected a repository of the form "
                     "MODEL/1/model.onnx");
  source.version = std::to_string(newest);
  const auto triton = folder / "config.pbtxt", config = folder / "config.json";
  if (fs::exists(triton, error)) HEDDLE_RETURN_IF_ERROR(read_triton_config(triton.string(), source.settings));
  if (fs::exists(config, error)) HEDDLE_RETURN_IF_ERROR(read_settings(config, source.settings));
  return source;
}

Result<ModelSource> find_plan(const std::string& path, const ModelSettings& defaults) {
  HEDDLE_ASSIGN_OR_RETURN(const auto file, read_plan_file(path));
  ModelSource source{served_name(file.problem), "1", "", defaults, path};
  if (file.problem.model) source.path = file.problem.model->path;
  return source;
}

}  // namespace

std::string served_name(const Problem& problem) {
  std::string name = problem.model ? fs::path(problem.model->path).stem().string() : problem.graph->name();
  for (auto& c : name)
    if (!is_name(std::string("n") + c)) c = '_';
  while (!name.empty() && name.front() == '.') name.erase(0, 1);
  return name.empty() ? "plan" : name.substr(0, 128);
}

Result<std::vector<ModelSource>> find_models(std::span<const std::string> paths,
                                             const ModelSettings& defaults) {
  std::vector<ModelSource> sources;
  for (const auto& path : paths) {
    std::error_code error;
    if (!fs::exists(path, error))
      return not_found(path +
                       ": no such file or folder; expected a model (.onnx) or a folder "
                       "with MODEL/VERSION/model.onnx");
    if (!fs::is_directory(path, error) && path.ends_with(".json")) {
      if (paths.size() > 1) return invalid_input(path + ": a plan uses the whole machine; serve it alone");
      HEDDLE_ASSIGN_OR_RETURN(auto source, find_plan(path, defaults));
      sources.push_back(std::move(source));
      continue;
    }
    if (!fs::is_directory(path, error)) {
      sources.push_back({fs::path(path).stem().string(), "1", path, defaults, ""});
      continue;
    }
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.is_directory(error) && entry.path().filename().string().front() != '.')
        folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    if (folders.empty())
      return not_found(path + ": holds no models; expected MODEL/VERSION/model.onnx in it");
    for (const auto& folder : folders) {
      HEDDLE_ASSIGN_OR_RETURN(auto source, find_in_folder(folder, defaults));
      sources.push_back(std::move(source));
    }
  }
  std::set<std::string> names;
  for (const auto& s : sources) {
    if (!is_name(s.name))
      return invalid_input(s.path + ": '" + s.name +
                           "' cannot be a model's name in a URL; expected letters, digits, "
                           "'.', '_' and '-', 128 at most");
    if (!names.insert(s.name).second)
      return invalid_input("two models are named '" + s.name + "'; rename one of the files");
  }
  return sources;
}

}  // namespace heddle
