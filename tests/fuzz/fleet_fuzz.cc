// Any bytes as a fleet file: they are refused with a message, or they give a fleet that passes its own check
// and reads back as itself. The first byte chooses JSON or YAML.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/cluster/yaml_json.h"
#include "heddle/fleet/fleet.h"
#include "json_mutator.h"
#include "require.h"

JsonPlace json_place(std::string_view input) { return {input.empty() ? 0u : 1u, input.size()}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  heddle::Json json;
  if (data[0] == 'y') {
    auto document = heddle::parse_yaml_as_json(text, "fuzz.yaml", "fleet");
    if (!document.ok()) {
      require(!document.error().message().empty());
      return 0;
    }
    json = std::move(document->json);
  } else {
    auto parsed = heddle::parse_json(text);
    if (!parsed.ok()) return 0;
    json = std::move(*parsed);
  }
  const auto fleet = heddle::fleet_from_json(json);
  if (!fleet.ok()) {
    require(!fleet.error().message().empty());
    return 0;
  }
  require(heddle::check_fleet(*fleet).ok());
  const auto written = heddle::to_json(*fleet);
  const auto again = heddle::fleet_from_json(written);
  require(again.ok() && heddle::to_json(*again) == written);
  const auto yaml = heddle::parse_yaml_as_json(heddle::json_to_yaml(written), "again.yaml", "fleet");
  require(yaml.ok());
  const auto from_yaml = heddle::fleet_from_json(yaml->json);
  require(from_yaml.ok() && heddle::to_json(*from_yaml) == written);
  return 0;
}
