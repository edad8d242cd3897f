// Reads and writes the member "file" of a fleet file's models; the format is in docs/fleet.md.
#pragma once

#include "heddle/base/json.h"
#include "heddle/fleet/fleet.h"

namespace heddle {

Result<FleetModelFile> model_file_from_json(const JsonCursor& at);
Json to_json(const FleetModelFile& file);

}  // namespace heddle
