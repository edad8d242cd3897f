// Cluster files (YAML, documented in docs/cluster-format.md) and names that stand for clusters.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// Strict: an unknown key is an error with file, line and the nearest spelling. `source` is the name used in
// errors.
Result<std::shared_ptr<const Cluster>> parse_cluster_yaml(std::string_view text, const std::string& source);
std::string cluster_to_yaml(const Cluster& cluster);

// The same content inside plan files.
Json cluster_to_json(const Cluster& cluster);
Result<std::shared_ptr<const Cluster>> cluster_from_json(const JsonCursor& cursor);

struct Preset {
  std::string name;         // "v100"
  std::string description;  // one line
  std::string source;       // paper and section
};
// Every machine of the five papers, and "local".
std::vector<Preset> cluster_presets();

// A file's path or "preset:NAME" ("preset:local": this machine).
Result<std::shared_ptr<const Cluster>> load_cluster(const std::string& file_or_preset);

}  // namespace heddle
