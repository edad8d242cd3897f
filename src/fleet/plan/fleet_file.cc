#include "fleet_file.h"

#include <filesystem>

#include "heddle/base/file.h"

namespace heddle {

bool is_yaml_path(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

Result<YamlDocument> load_document(const std::string& path, const std::string& kind) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, int64_t{1} << 28));
  if (is_yaml_path(path)) return parse_yaml_as_json(text, path, kind);
  YamlDocument document;
  auto json = parse_json(text);
  if (!json.ok()) return std::move(json).error().with_context(path);
  document.json = std::move(*json);
  return document;
}

Status write_document(const std::string& path, const Json& json) {
  return write_file_atomic(path, is_yaml_path(path) ? json_to_yaml(json) : json_text(json, 1) + "\n");
}

}  // namespace heddle
