// One way of reading and writing fleet and plan files, whatever their syntax.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/json.h"
#include "heddle/cluster/yaml_json.h"

namespace heddle {

// "format" must be this one, "version" 1.
Status check_format(const JsonCursor& root, const std::string& format);
// .yaml or .yml
bool is_yaml_path(const std::string& path);
// "a/fleet.yaml" is "fleet".
std::string stem_of(const std::string& path);
Result<YamlDocument> load_document(const std::string& path, const std::string& kind);
Status write_document(const std::string& path, const Json& json);

// `read` sees the document as JSON; its errors get the file, and the line where it is YAML.
template <class T>
Result<T> read_document(const std::string& path, const std::string& kind,
                        const std::function<Result<T>(const Json&)>& read) {
  HEDDLE_ASSIGN_OR_RETURN(const auto document, load_document(path, kind));
  auto value = read(document.json);
  if (!value.ok()) return with_yaml_place(std::move(value).error(), document, path);
  return value;
}

}  // namespace heddle
