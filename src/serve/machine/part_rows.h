// Rows of requests in a worker that computes a part of a model: made from a request's bytes or from what an
// earlier part has left, and packed for the parts behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/fleet.h"
#include "local_model.h"

namespace heddle {

// One tensor of one row on its way between parts.
struct MapSection {
  enum class Kind : uint8_t { kInput, kFeature, kOutput };
  uint32_t row = 0;
  Kind kind = Kind::kFeature;
  uint32_t index = 0;  // among the model's inputs or outputs; of a feature its tensor in the model's graph
  std::vector<std::byte> bytes;
};
using MapSections = std::vector<MapSection>;

// A row that owns its bytes.
struct PartRow final : TensorRow {
  PartRow() = default;
  PartRow(PartRow&&) = default;  // a copy would point into the other's bytes
  PartRow& operator=(PartRow&&) = default;
  void settled() override {}
  std::vector<std::vector<std::byte>> own_inputs, own_outputs;  // empty: not here, not computed yet
};

// The inputs of the model and the feature maps from before block `to` that parts behind it read.
struct PartCargo {
  std::vector<uint32_t> inputs, features;
};
PartCargo cargo_behind(const LocalModel& model, const FleetModelFile& file, int to);

// From the inputs one after the other, as a client sent them; an empty payload stands for zeros. Errors:
// another size than the model's.
Result<std::vector<PartRow>> rows_from_inputs(const LocalModel& model,
                                              const std::vector<std::string>& payloads);
// From what another worker sent: sizes and places are checked against the model.
Result<std::vector<PartRow>> rows_from_sections(const LocalModel& model, uint32_t rows,
                                                const MapSections& sections);
// Gives every row room for the outputs that it does not have yet; then it may be run.
void prepare_outputs(const LocalModel& model, std::vector<PartRow>& rows);
// What goes to the next part: the cargo, and the outputs of the parts up to here. Takes the rows' bytes.
MapSections sections_of(const LocalModel& model, const PartCargo& cargo, const FleetModelFile& file, int to,
                        std::vector<PartRow>& rows);
// All outputs of a row, one after the other.
std::string outputs_text(const PartRow& row);

}  // namespace heddle
