#include "heddle/cluster/yaml_json.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <unordered_set>

#include "heddle/base/spelling.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

// A cluster of 1,024 nodes and 20,000 links, written out in full, stays below both limits.
constexpr size_t kMaxKeyBytes = 500;
constexpr size_t kMaxYamlBytes = size_t{8} << 20;
constexpr size_t kMaxYamlMarks = 600'000;  // characters that can begin a node: bounds yaml-cpp's nodes
constexpr int kMaxFlowDepth =
    32;  // "[" and "{"; the formats need at most 6. yaml-cpp itself refuses 500 of any kind

Error at_line(const std::string& source, int line, std::string message) {
  return invalid_input(std::move(message)).with_context(fmt::format("{}:{}", source, line));
}

// Ignores quotes and comments, so the count may be too high, but only for artificial files.
Status prescan(std::string_view text, const std::string& source, const std::string& kind) {
  if (text.size() > kMaxYamlBytes) {
    return invalid_input(fmt::format("the file has {}; a {} file has at most {}",
                                     format_bytes(static_cast<int64_t>(text.size())), kind,
                                     format_bytes(static_cast<int64_t>(kMaxYamlBytes))))
        .with_context(source);
  }
  int depth = 0, line = 1;
  size_t marks = 0;
  for (const char c : text) {
    if (c == '\0') return at_line(source, line, "there is a zero byte; expected a text file");
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (std::string_view("[{,:-?&*!\n").find(c) != std::string_view::npos) ++marks;
    if (depth > kMaxFlowDepth) {
      return at_line(
          source, line,
          fmt::format("brackets are nested deeper than {}; a {} file needs fewer", kMaxFlowDepth, kind));
    }
    if (marks > kMaxYamlMarks)
      return at_line(source, line, "the file has too many entries for a " + kind + " file");
    if (c == '\n') ++line;
  }
  return {};
}

// Records the line at which the last document began.
class DocumentMarks final : public YAML::EventHandler {
 public:
  int line = 0;
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

// `line` from 0.
bool is_indented_by_tab(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find_first_not_of(" \t-")).find('\t') != std::string_view::npos;
}

// Rejects input that would make yaml-cpp recurse or allocate without bound, then parses one document.
Result<YAML::Node> parse_document(std::string_view text, const std::string& source, const std::string& kind) {
  HEDDLE_RETURN_IF_ERROR(prescan(text, source, kind));
  try {
    // Not LoadAll: after a stray "," yaml-cpp finds empty documents without end. This first pass reads at
    // most two documents, and so detects a second one, which Load would silently ignore.
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    DocumentMarks marks;
    if (!parser.HandleNextDocument(marks)) return at_line(source, 1, "the file is empty; expected a " + kind);
    if (parser.HandleNextDocument(marks)) {
      return at_line(source, std::max(0, marks.line) + 1,
                     "a second document begins here; expected one " + kind + " per file");
    }
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& e) {
    const std::string what = is_indented_by_tab(text, e.mark.line)
                                 ? "the line is indented by a tab; use spaces"
                             : e.msg == "bad file" ? "nested too deeply"
                                                   : e.msg;
    return at_line(source, e.mark.line + 1,
                   fmt::format("not valid YAML at column {}: {}", e.mark.column + 1, what));
  } catch (const std::exception& e) {
    return invalid_input(fmt::format("not valid YAML: {}", e.what())).with_context(source);
  }
}

int line_of(const YAML::Node& node) { return std::max(0, node.Mark().line) + 1; }

Error at_node(const YAML::Node& node, const std::string& source, std::string message) {
  return at_line(source, line_of(node), std::move(message));
}

// Values spelled as in JSON become JSON values; anything else is text.
Json plain_scalar(const std::string& text, PlainScalars plain = PlainScalars::kTyped) {
  if (text.empty() || text == "null" || text == "~") return nullptr;
  if (plain == PlainScalars::kText) return text;
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
  Converter(const std::string& source, PlainScalars plain, YamlDocument& out)
      : source_(source), plain_(plain), out_(out) {}

  Result<Json> convert(const YAML::Node& node, const std::string& path) {
    // The depth limit also ends aliases that contain themselves.
    constexpr int kMaxDepth = 64;
    if (depth_ >= kMaxDepth) return at_node(node, source_, "values are nested deeper than 64");
    const DepthGuard guard(depth_);
    // yaml-cpp marks a missing value with line -1: it keeps the line of its key.
    if (!node.IsNull()) HEDDLE_RETURN_IF_ERROR(note_line(node, path));
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        HEDDLE_RETURN_IF_ERROR(count_bytes(node, node.Scalar().size()));
        HEDDLE_RETURN_IF_ERROR(check_text(node));
        // yaml-cpp tags quoted scalars with "!".
        return node.Tag() == "!" ? Json(node.Scalar()) : plain_scalar(node.Scalar(), plain_);
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
    Json::object_t object;
    std::unordered_set<std::string> seen;  // for lookups in an ordered object take time linear in its size
    for (const auto& entry : node) {
      HEDDLE_RETURN_IF_ERROR(count(entry.second));
      if (!entry.first.IsScalar()) return at_node(entry.first, source_, "a key is not a word");
      HEDDLE_RETURN_IF_ERROR(check_text(entry.first));
      const auto& key = entry.first.Scalar();
      if (key.size() > kMaxKeyBytes)
        return at_node(entry.first, source_,
                       fmt::format("a key of {} bytes, expected at most {}", key.size(), kMaxKeyBytes));
      if (!seen.insert(key).second)
        return at_node(entry.first, source_, "the key " + quote_text(key) + " stands twice");
      const std::string below = path + "." + key;
      HEDDLE_RETURN_IF_ERROR(note_line(entry.first, below));
      HEDDLE_ASSIGN_OR_RETURN(auto value, convert(entry.second, below));
      static_cast<Json::object_t::Container&>(object).emplace_back(key, std::move(value));
    }
    return Json(std::move(object));
  }

  Status check_text(const YAML::Node& node) const {
    if (is_utf8(node.Scalar())) return {};
    return at_node(node, source_, "here is text that is not UTF-8; save the file as UTF-8");
  }

  // Aliases let a small file stand for a huge value, so nodes and texts are counted at every visit. Paths repeat the
  // keys above: far more bytes than the file has, if those are long.
  Status note_line(const YAML::Node& node, const std::string& path) {
    HEDDLE_RETURN_IF_ERROR(count_bytes(node, path.size()));
    out_.lines[path] = line_of(node);
    return {};
  }

  Status count_bytes(const YAML::Node& node, size_t bytes) {
    constexpr size_t kMostBytes = size_t{256} << 20;
    bytes_ += bytes;
    if (bytes_ > kMostBytes)
      return at_node(node, source_,
                     "the document's texts and the keys above them take more than 256 MiB, aliases counted "
                     "as often as used");
    return {};
  }

  Status count(const YAML::Node& node) {
    constexpr int64_t kMaxNodes = 2'000'000;
    if (++nodes_ > kMaxNodes)
      return at_node(node, source_,
                     "the document has more than 2000000 values, aliases counted as often as used");
    return {};
  }

  const std::string& source_;
  PlainScalars plain_;
  YamlDocument& out_;
  int64_t nodes_ = 0;
  int depth_ = 0;
  size_t bytes_ = 0;
};

// Lists of single values and of short objects without lists stand on a line each.
bool is_short(const Json& json) {
  constexpr size_t kMostLineBytes = 110;
  const auto is_single = [](const Json& value) { return !value.is_structured(); };
  return std::all_of(json.begin(), json.end(), is_single) &&
         (json.is_array() || json_text(json).size() <= kMostLineBytes);
}

// Text that readers of YAML 1.1 (PyYAML, kubectl) take for a boolean, a number in another base, or a date.
bool is_typed_in_yaml_1_1(const std::string& text) {
  static constexpr std::string_view kBooleans[] = {"y",   "n",    "yes",   "no",  "on",
                                                   "off", "true", "false", "null"};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(std::begin(kBooleans), std::end(kBooleans), lower) != std::end(kBooleans)) return true;
  const auto digits = [&lower](size_t from, const char* allowed) {
    return lower.size() > from && lower.find_first_not_of(allowed, from) == std::string::npos;
  };
  const size_t sign = lower.starts_with('-') || lower.starts_with('+') ? 1 : 0;
  if (lower.compare(sign, 2, "0x") == 0) return digits(sign + 2, "0123456789abcdef_");
  if (lower.compare(sign, 2, "0b") == 0) return digits(sign + 2, "01_");
  if (lower.compare(sign, 1, ".") == 0)
    return digits(sign + 1, "0123456789_e+-") || lower.substr(sign) == ".inf" || lower == ".nan";
  if (sign < lower.size() && std::isdigit(static_cast<unsigned char>(lower[sign])) == 0) return false;
  const bool date = lower.size() >= 8 && lower[4] == '-' && lower.find_first_not_of("0123456789") == 4;
  return date || digits(sign, "0123456789_:.");
}

void emit(YAML::Emitter& out, const Json& json, bool on_one_line) {
  if (json.is_object()) {
    if (on_one_line || json.empty()) out << YAML::Flow;
    out << YAML::BeginMap;
    for (const auto& [key, value] : json.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, value, on_one_line);
    }
    out << YAML::EndMap;
  } else if (json.is_array()) {
    if (on_one_line || is_short(json)) out << YAML::Flow;
    const bool short_entries = std::all_of(json.begin(), json.end(), is_short);
    out << YAML::BeginSeq;
    for (const auto& value : json) emit(out, value, on_one_line || short_entries);
    out << YAML::EndSeq;
  } else if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (!plain_scalar(text).is_string() || is_typed_in_yaml_1_1(text)) out << YAML::DoubleQuoted;
    out << text;
  } else {
    out << json_text(json);
  }
}

}  // namespace

Result<YamlDocument> parse_yaml_as_json(std::string_view text, const std::string& source,
                                        const std::string& kind, PlainScalars plain) {
  HEDDLE_ASSIGN_OR_RETURN(const auto root, parse_document(text, source, kind));
  YamlDocument document;
  try {
    HEDDLE_ASSIGN_OR_RETURN(document.json, Converter(source, plain, document).convert(root, "$"));
  } catch (const YAML::Exception& e) {
    return invalid_input(std::string("not valid YAML: ") + e.what()).with_context(source);
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
  YAML::Emitter out;
  emit(out, json, false);
  return std::string(out.c_str()) + "\n";
}

}  // namespace heddle
