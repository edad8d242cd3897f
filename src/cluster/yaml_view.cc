#include "yaml_view.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "heddle/base/spelling.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

// A cluster of 1,024 nodes and 20,000 links, written out in full, stays below both limits.
constexpr size_t kMaxYamlBytes = size_t{8} << 20;
constexpr size_t kMaxYamlMarks = 600'000;  // characters that can begin a node: bounds yaml-cpp's nodes
constexpr size_t kMaxWordBytes = 500;      // per value; names have a lower limit in ClusterBuilder
constexpr int kMaxFlowDepth =
    32;  // "[" and "{"; the formats need at most 6. yaml-cpp itself refuses 500 of any kind

Error at_line(const std::string& source, int line, std::string message) {
  return Error(Code::kInvalidInput, std::move(message)).with_context(fmt::format("{}:{}", source, line));
}

// Ignores quotes and comments, so the count may be too high, but only for artificial files.
Status prescan(std::string_view text, const std::string& source, const std::string& kind) {
  if (text.size() > kMaxYamlBytes) {
    return Error(Code::kInvalidInput, fmt::format("the file has {}; a {} file has at most {}",
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

const char* type_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return "a single value";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "nothing";
  }
}

std::string shortened(const std::string& text) {
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::optional<int64_t> to_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> to_double(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
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

}  // namespace

Result<YAML::Node> parse_yaml_document(std::string_view text, const std::string& source,
                                       const std::string& kind) {
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
    const std::string what = e.msg == "bad file" ? "nested too deeply" : e.msg;
    return at_line(source, e.mark.line + 1,
                   fmt::format("not valid YAML at column {}: {}", e.mark.column + 1, what));
  } catch (const std::exception& e) {
    return Error(Code::kInvalidInput, fmt::format("not valid YAML: {}", e.what())).with_context(source);
  }
}

std::string YamlView::where(const YAML::Node& node) const {
  // yaml-cpp marks a missing value with line -1.
  return fmt::format("{}:{}", *source_, std::max(0, node.Mark().line) + 1);
}

// yaml-cpp marks a missing value at the next token, possibly lines below, so use the key's place.
std::string YamlView::where_key(std::string_view key) const {
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return where(entry.first);
  }
  return where();
}

Error YamlView::error(std::string message) const {
  return Error(Code::kInvalidInput, std::move(message)).with_context(where());
}

Status YamlView::check_length(const YAML::Node& node) const {
  if (node.Scalar().size() <= kMaxWordBytes) return {};
  return Error(Code::kInvalidInput,
               fmt::format("the value '{}' has {} bytes; expected at most {}", shortened(node.Scalar()),
                           node.Scalar().size(), kMaxWordBytes))
      .with_context(where(node));
}

Error YamlView::wrong(const Scalar& scalar, std::string_view key, const std::string& expected) const {
  return Error(Code::kInvalidInput,
               fmt::format("'{}' of {} is '{}'; expected {}", key, what_, shortened(scalar.text), expected))
      .with_context(scalar.where);
}

Status YamlView::check_keys(std::initializer_list<std::string_view> allowed) const {
  if (!node_.IsMap())
    return error(fmt::format("{} is {}; expected a mapping of keys to values", what_, type_of(node_)));
  const std::vector<std::string> names(allowed.begin(), allowed.end());
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    const YAML::Node& key = entry.first;
    if (!key.IsScalar()) {
      return Error(Code::kInvalidInput,
                   fmt::format("a key of {} is {}; expected a word", what_, type_of(key)))
          .with_context(where(key));
    }
    const std::string& name = key.Scalar();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return Error(Code::kInvalidInput,
                   fmt::format("unknown key '{}' in {}{}; expected {}", shortened(name), what_,
                               name.size() > kMaxWordBytes ? "" : did_you_mean(name, names),
                               join_names(names, names.size())))
          .with_context(where(key));
    }
    if (!seen.insert(name).second) {
      return Error(Code::kInvalidInput, fmt::format("the key '{}' stands twice in {}", name, what_))
          .with_context(where(key));
    }
  }
  return {};
}

std::optional<YAML::Node> YamlView::find(std::string_view key) const {
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
  }
  return std::nullopt;
}

Result<std::optional<YamlView::Scalar>> YamlView::scalar(std::string_view key, bool required) const {
  const auto node = find(key);
  if (!node) {
    if (required) return error(fmt::format("{} has no '{}', which is required", what_, key));
    return std::optional<Scalar>();
  }
  if (!node->IsScalar() || node->Scalar().empty()) {
    return Error(Code::kInvalidInput, fmt::format("'{}' of {} is {}; expected a single value", key, what_,
                                                  node->IsScalar() ? "empty" : type_of(*node)))
        .with_context(node->IsNull() ? where_key(key) : where(*node));
  }
  HEDDLE_RETURN_IF_ERROR(check_length(*node));
  return std::optional<Scalar>(Scalar{node->Scalar(), where(*node)});
}

Result<YamlView::Scalar> YamlView::required_scalar(std::string_view key) const {
  HEDDLE_ASSIGN_OR_RETURN(auto value, scalar(key, true));
  return *value;
}

Result<int64_t> YamlView::bytes_or(std::string_view key, int64_t fallback) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, scalar(key));
  if (!value) return fallback;
  const auto bytes = parse_bytes(value->text);
  if (!bytes || *bytes < 0) return wrong(*value, key, "a size such as '16GiB', '512MB' or a number of bytes");
  return *bytes;
}

Result<double> YamlView::bandwidth_or(std::string_view key, std::optional<double> fallback,
                                      bool zero_allowed) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, scalar(key, !fallback));
  if (!value) return *fallback;
  const auto rate = parse_bandwidth(value->text);
  if (!rate || !std::isfinite(*rate) || *rate < 0 || (*rate == 0 && !zero_allowed)) {
    return wrong(*value, key,
                 fmt::format("a bandwidth{} such as '12GB/s', '100Gbit/s' or bytes per second",
                             zero_allowed ? "" : " above 0"));
  }
  return *rate;
}

Result<double> YamlView::time_us_or(std::string_view key, double fallback) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, scalar(key));
  if (!value) return fallback;
  const auto us = parse_time_us(value->text);
  if (!us || !std::isfinite(*us) || *us < 0)
    return wrong(*value, key, "a time such as '5us', '1.5ms' or microseconds");
  return *us;
}

Result<double> YamlView::flops_or(std::string_view key, double fallback) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, scalar(key));
  if (!value) return fallback;
  const auto flops = parse_flops(value->text);
  if (!flops || !std::isfinite(*flops) || *flops < 0)
    return wrong(*value, key, "a rate such as '15.7TFLOPS' or FLOP per second");
  return *flops;
}

Result<double> YamlView::positive_number_or(std::string_view key, double fallback) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, scalar(key));
  if (!value) return fallback;
  const auto number = to_double(value->text);
  if (!number || *number <= 0) return wrong(*value, key, "a number above 0");
  return *number;
}

Result<int64_t> YamlView::int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, scalar(key));
  if (!value) return fallback;
  const auto number = to_int(value->text);
  if (!number || *number < min || *number > max)
    return wrong(*value, key, fmt::format("a whole number from {} to {}", min, max));
  return *number;
}

Result<std::vector<YamlView>> YamlView::elements(std::string_view key, const std::string& what) const {
  std::vector<YamlView> views;
  const auto node = find(key);
  if (!node || node->IsNull()) return views;
  if (!node->IsSequence()) {
    return Error(Code::kInvalidInput,
                 fmt::format("'{}' of {} is {}; expected a list", key, what_, type_of(*node)))
        .with_context(where(*node));
  }
  views.reserve(node->size());
  for (const auto& element : *node) views.emplace_back(element, source_, what);
  return views;
}

Result<std::vector<YamlView::Scalar>> YamlView::scalars(std::string_view key) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto views, elements(key, ""));
  std::vector<Scalar> values;
  for (const YamlView& v : views) {
    if (!v.node_.IsScalar() || v.node_.Scalar().empty()) {
      return v.error(fmt::format("an element of '{}' of {} is {}; expected a single value", key, what_,
                                 v.node_.IsScalar() ? "empty" : type_of(v.node_)));
    }
    HEDDLE_RETURN_IF_ERROR(check_length(v.node_));
    values.push_back({v.node_.Scalar(), v.where()});
  }
  return values;
}

Result<std::vector<int>> YamlView::cores(std::string_view key, int max_core) const {
  std::vector<Scalar> parts;
  const auto node = find(key);
  if (node && node->IsScalar()) {
    std::string_view rest = node->Scalar();
    for (size_t comma = 0; comma != std::string_view::npos; rest.remove_prefix(comma + 1)) {
      comma = rest.find(',');
      parts.push_back({std::string(rest.substr(0, comma)), where(*node)});
      if (comma == std::string_view::npos) break;
    }
  } else {
    HEDDLE_ASSIGN_OR_RETURN(parts, scalars(key));
  }
  std::vector<int> cores;
  for (const Scalar& part : parts) {
    const size_t dash = part.text.find('-');
    const auto first = to_int(std::string_view(part.text).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : to_int(std::string_view(part.text).substr(dash + 1));
    const bool valid = first && last && *first >= 0 && *first <= *last && *last <= max_core;
    if (!valid || cores.size() > static_cast<size_t>(max_core)) {
      return wrong(part, key, fmt::format("core numbers from 0 to {} such as '0-3,8' or [0, 1]", max_core));
    }
    for (int64_t core = *first; core <= *last; ++core) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

}  // namespace heddle
