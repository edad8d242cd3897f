#include "heddle/cluster/yaml_json.h"

#include <charconv>
#include <cmath>

#include "heddle/base/spelling.h"
#include "yaml_view.h"

namespace heddle {
namespace {

Error at_node(const YAML::Node& node, const std::string& source, std::string message) {
  return Error(Code::kInvalidInput, std::move(message))
      .with_context(source + ":" + std::to_string(std::max(0, node.Mark().line) + 1));
}

// Values spelled as in JSON become JSON values; anything else is text.
Json plain_scalar(const std::string& text) {
  if (text.empty() || text == "null" || text == "~") return nullptr;
  if (text == "true") return true;
  if (text == "false") return false;
  const char* end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto r = std::from_chars(text.data(), end, whole); r.ec == std::errc() && r.ptr == end)
    return whole;
  double number = 0;
  const auto r = std::from_chars(text.data(), end, number);
  if (r.ec == std::errc() && r.ptr == end && std::isfinite(number)) return number;
  return text;
}

// Invalid UTF-8 passes yaml-cpp, but could not be written as JSON again.
bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

class Converter {
 public:
  Converter(const std::string& source, YamlDocument& out) : source_(source), out_(out) {}

  Result<Json> convert(const YAML::Node& node, const std::string& path) {
    // The depth limit also ends aliases that contain themselves.
    constexpr int kMaxDepth = 64;
    if (depth_ >= kMaxDepth) return at_node(node, source_, "values are nested deeper than 64");
    const DepthGuard guard(depth_);
    out_.lines[path] = std::max(0, node.Mark().line) + 1;
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        HEDDLE_RETURN_IF_ERROR(check_text(node));
        // yaml-cpp tags quoted scalars with "!".
        return node.Tag() == "!" ? Json(node.Scalar()) : plain_scalar(node.Scalar());
      case YAML::NodeType::Sequence:
        return list(node, path);
      case YAML::NodeType::Map:
        return mapping(node, path);
      default:
        return Json(nullptr);
    }
  }

 private:
  Result<Json> list(const YAML::Node& node, const std::string& path) {
    Json array = Json::array();
    size_t index = 0;
    for (const auto& entry : node) {
      HEDDLE_RETURN_IF_ERROR(count(entry));
      HEDDLE_ASSIGN_OR_RETURN(auto value, convert(entry, path + "[" + std::to_string(index++) + "]"));
      array.push_back(std::move(value));
    }
    return array;
  }

  Result<Json> mapping(const YAML::Node& node, const std::string& path) {
    Json object = Json::object();
    for (const auto& entry : node) {
      HEDDLE_RETURN_IF_ERROR(count(entry.second));
      if (!entry.first.IsScalar()) return at_node(entry.first, source_, "a key is not a word");
      HEDDLE_RETURN_IF_ERROR(check_text(entry.first));
      const auto& key = entry.first.Scalar();
      if (object.contains(key))
        return at_node(entry.first, source_, "the key " + quote_text(key) + " stands twice");
      HEDDLE_ASSIGN_OR_RETURN(object[key], convert(entry.second, path + "." + key));
    }
    return object;
  }

  Status check_text(const YAML::Node& node) const {
    if (is_utf8(node.Scalar())) return {};
    return at_node(node, source_, "here is text that is not UTF-8; save the file as UTF-8");
  }

  // Aliases let a small file stand for a huge value, so nodes are counted at every visit.
  Status count(const YAML::Node& node) {
    constexpr int64_t kMaxNodes = 2'000'000;
    if (++nodes_ > kMaxNodes)
      return at_node(node, source_,
                     "the document has more than 2000000 values, aliases counted as often as used");
    return {};
  }

  const std::string& source_;
  YamlDocument& out_;
  int64_t nodes_ = 0;
  int depth_ = 0;
};

bool flat(const Json& json) {
  for (const auto& v : json)
    if (v.is_structured() && !v.empty()) return false;
  return true;
}

void write_block(const Json& json, size_t indent, std::string& out);

// Writes a value after "key:" or "-": short values on the same line, others as a block below.
void write_value(const Json& json, size_t indent, std::string& out) {
  if (!json.is_structured() || json.empty() || (json.is_array() && flat(json))) {
    out += " " + json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return;
  }
  out += "\n";
  write_block(json, indent, out);
}

void write_block(const Json& json, size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      out += pad + Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ":";
      write_value(value, indent + 2, out);
    }
  } else {
    for (const auto& value : json) {
      out += pad + "-";
      write_value(value, indent + 2, out);
    }
  }
}

}  // namespace

Result<YamlDocument> parse_yaml_as_json(std::string_view text, const std::string& source,
                                        const std::string& kind) {
  HEDDLE_ASSIGN_OR_RETURN(const auto root, parse_yaml_document(text, source, kind));
  YamlDocument document;
  try {
    HEDDLE_ASSIGN_OR_RETURN(document.json, Converter(source, document).convert(root, "$"));
  } catch (const YAML::Exception& e) {
    return Error(Code::kInvalidInput, std::string("not valid YAML: ") + e.what()).with_context(source);
  }
  return document;
}

Error with_yaml_place(Error error, const YamlDocument& document, const std::string& source) {
  for (const auto& context : error.contexts()) {
    if (context.empty() || context[0] != '$') continue;
    for (auto path = context; !path.empty(); path.pop_back()) {
      const auto found = document.lines.find(path);
      if (found == document.lines.end()) continue;
      return std::move(error).with_context(source + ":" + std::to_string(found->second));
    }
  }
  return std::move(error).with_context(source);
}

std::string json_to_yaml(const Json& json) {
  if (!json.is_structured() || json.empty())
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string out;
  write_block(json, 0, out);
  return out;
}

}  // namespace heddle
