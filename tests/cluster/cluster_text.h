// Cluster files as texts.
#pragma once

#include <string>

#include "heddle/cluster/cluster_yaml.h"
#include "support/replaced.h"

namespace heddle::test {

// The message of the error that reading the file's text gives.
inline std::string error_of(const std::string& text) {
  const auto parsed = parse_cluster_yaml(text, "c.yaml");
  return parsed.ok() ? "no error" : parsed.error().to_string();
}

}  // namespace heddle::test
