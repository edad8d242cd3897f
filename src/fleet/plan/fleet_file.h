// Reads and writes fleet and plan files, as JSON or YAML.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/json.h"
#include "heddle/cluster/yaml_json.h"

namespace heddle {

// True for .yaml and .yml.
bool is_yaml_path(const std::string& path);
// The file's name without folder and suffix: "fleet" for "a/fleet.yaml".
std::string stem_of(const std::string& path);
Result<YamlDocument> load_document(const std::string& path, const std::string& kind);
Status write_document(const std::string& path, const Json& json);

// `read` gets the document as JSON. Its errors are completed by the file and, for YAML, the line.
template <class T>
Result<T> read_document(const std::string& path, const std::string& kind,
                        const std::function<Result<T>(const Json&)>& read) {
  HEDDLE_ASSIGN_OR_RETURN(const auto document, load_document(path, kind));
  auto value = read(document.json);
  if (!value.ok()) return with_yaml_place(std::move(value).error(), document, path);
  return value;
}

}  // namespace heddle
