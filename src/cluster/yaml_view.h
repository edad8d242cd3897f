// A strict view of a YAML document: every getter checks type and range, and errors name the file, the line,
// the value found and what was expected. Catches yaml-cpp's exceptions.
#pragma once

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// Rejects input that would make yaml-cpp recurse or allocate without bound, then parses one document. `kind`
// is the expected content, for messages.
Result<YAML::Node> parse_yaml_document(std::string_view text, const std::string& source,
                                       const std::string& kind = "cluster");

class YamlView {
 public:
  YamlView(YAML::Node node, const std::string* source, std::string what)
      : node_(std::move(node)), source_(source), what_(std::move(what)) {}

  std::string where() const { return where(node_); }
  Error error(std::string message) const;

  // Fails unless this is a mapping with only `allowed` keys, each once.
  Status check_keys(std::initializer_list<std::string_view> allowed) const;
  bool has(std::string_view key) const { return find(key).has_value(); }

  // A scalar's text and place. If absent: nullopt, or an error when `required`.
  struct Scalar {
    std::string text;
    std::string where;
  };
  Result<std::optional<Scalar>> scalar(std::string_view key, bool required = false) const;
  Result<Scalar> required_scalar(std::string_view key) const;

  // Quantities with units, never negative.
  Result<int64_t> bytes_or(std::string_view key, int64_t fallback) const;
  Result<double> bandwidth_or(std::string_view key, std::optional<double> fallback, bool zero_allowed) const;
  Result<double> time_us_or(std::string_view key, double fallback) const;
  Result<double> flops_or(std::string_view key, double fallback) const;
  Result<double> positive_number_or(std::string_view key, double fallback) const;
  Result<int64_t> int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const;

  // The elements of a sequence (none if absent); `what` describes one in messages: "a device".
  Result<std::vector<YamlView>> elements(std::string_view key, const std::string& what) const;
  // A sequence of scalars (none if absent).
  Result<std::vector<Scalar>> scalars(std::string_view key) const;
  // "0-3,8" or [0, 1, 2, 3, 8].
  Result<std::vector<int>> cores(std::string_view key, int max_core) const;

 private:
  std::optional<YAML::Node> find(std::string_view key) const;
  std::string where(const YAML::Node& node) const;
  std::string where_key(std::string_view key) const;
  Status check_length(const YAML::Node& node) const;
  Error wrong(const Scalar& scalar, std::string_view key, const std::string& expected) const;

  YAML::Node node_;
  const std::string* source_;
  std::string what_;
};

}  // namespace heddle
