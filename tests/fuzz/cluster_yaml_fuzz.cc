// Any bytes as a cluster file: they are refused with a message, or they build a cluster that reads back as
// itself from YAML and from JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "json_mutator.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cluster = heddle::parse_cluster_yaml(text, "fuzz.yaml");
  if (!cluster.ok()) {
    require(!cluster.error().message().empty());
    return 0;
  }
  const std::string yaml = heddle::cluster_to_yaml(**cluster);
  const auto again = heddle::parse_cluster_yaml(yaml, "again.yaml");
  require(again.ok() && heddle::cluster_to_yaml(**again) == yaml);
  const auto json = heddle::parse_json(heddle::cluster_to_json(**cluster).dump());
  require(json.ok());
  const auto from_json = heddle::cluster_from_json(heddle::JsonCursor(*json));
  require(from_json.ok() && heddle::cluster_to_yaml(**from_json) == yaml);
  return 0;
}
