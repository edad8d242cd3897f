#include "bench_placement_reference.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "heddle/base/file.h"

namespace heddle::bench {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;

Error bad_line(const std::string& path, size_t line, const std::string& message) {
  return Error(Code::kInvalidInput, message).with_context("line " + std::to_string(line)).with_context(path);
}

// RFC 4180 without line breaks inside fields.
Result<std::vector<std::string>> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (quoted) return Error(Code::kInvalidInput, "a quoted field does not end on its line");
  return fields;
}

double half_last_digit(const std::string& number) {
  const auto point = number.find('.');
  if (point == std::string::npos || number.find_first_of("eE") != std::string::npos) return 0;
  return 0.5 * std::pow(10.0, -static_cast<double>(number.size() - point - 1));
}

// "non-contiguous q=2" stays; so does "contiguous".
std::string mode_of(const std::string& setting, const std::string& mode) {
  if (mode == "contiguous" || mode.starts_with("non-contiguous")) return mode;
  return setting == "latency" ? "non-contiguous q=2" : "non-contiguous";
}

}  // namespace

Result<PlacementReferences> read_placement_references(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, kMaxBytes));
  static constexpr const char* kNeeded[] = {"setting", "graph",     "workload", "mode",
                                            "peer",    "objective", "feasible"};
  std::map<std::string, size_t> column;
  PlacementReferences references;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    const auto parsed = fields_of(line);
    if (!parsed.ok()) return bad_line(path, number, parsed.error().message());
    const auto& fields = *parsed;
    if (column.empty()) {
      for (size_t i = 0; i < fields.size(); ++i) column[fields[i]] = i;
      for (const auto* name : kNeeded)
        if (!column.contains(name))
          return bad_line(path, number, std::string("there is no column '") + name + "'");
      continue;
    }
    const auto field = [&](const char* name) {
      return column[name] < fields.size() ? fields[column[name]] : std::string();
    };
    const auto value_text = field("objective");
    if (field("feasible") != "yes" || value_text.empty()) continue;
    PlacementReference reference;
    const auto [rest, error] =
        std::from_chars(value_text.data(), value_text.data() + value_text.size(), reference.value);
    if (error != std::errc() || rest != value_text.data() + value_text.size())
      return bad_line(path, number, "the objective '" + value_text + "' is not a number");
    reference.tolerance = half_last_digit(value_text) + 1e-9 * reference.value;
    reference.peer = field("peer");
    const auto key = field("setting") + "/" + field("graph") + "/" + field("workload") + "/" +
                     mode_of(field("setting"), field("mode"));
    const auto [entry, fresh] = references.emplace(key, reference);
    // Of two that are equal to the digits given the more precise.
    auto& best = entry->second;
    const double same = std::max(best.tolerance, reference.tolerance);
    if (!fresh && (reference.value < best.value - same ||
                   (reference.value <= best.value + same && reference.tolerance < best.tolerance)))
      best = reference;
  }
  return references;
}

}  // namespace heddle::bench
