// Cluster files (YAML, documented in docs/cluster-format.md) and named presets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// Strict: an unknown key is an error with file, line and the nearest spelling. `source` names the file in
// errors.
Result<std::shared_ptr<const Cluster>> parse_cluster_yaml(std::string_view text, const std::string& source);
std::string cluster_to_yaml(const Cluster& cluster);

// The JSON form used inside plan files, with the same content.
Json cluster_to_json(const Cluster& cluster);
Result<std::shared_ptr<const Cluster>> cluster_from_json(const JsonCursor& cursor);

struct Preset {
  std::string name;         // "v100"
  std::string description;  // one line
  std::string source;       // paper and section
};
// Every machine of the five papers, and "local".
std::vector<Preset> cluster_presets();

// Loads a file, or "preset:NAME" ("preset:local": this machine).
Result<std::shared_ptr<const Cluster>> load_cluster(const std::string& file_or_preset);

}  // namespace heddle
