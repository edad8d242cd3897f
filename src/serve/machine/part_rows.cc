#include "part_rows.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

Error wrong_size(const std::string& what, size_t is, size_t expected) {
  return invalid_input(what + " has " + std::to_string(is) + " bytes, the model expects " +
                       std::to_string(expected));
}

size_t row_bytes(const TensorInfo& info) { return static_cast<size_t>(info.row_bytes); }

PartRow empty_row(const LocalModel& model) {
  PartRow row;
  row.own_inputs.resize(model.served.inputs.size());
  row.own_outputs.resize(model.served.outputs.size());
  row.inputs.assign(model.served.inputs.size(), nullptr);
  row.outputs.assign(model.served.outputs.size(), nullptr);
  return row;
}

}  // namespace

PartCargo cargo_behind(const LocalModel& model, const FleetModelFile& file, int to) {
  const auto& graph = *model.sizes.at(1)->graph();
  const auto behind = [&file, to](OpId op) { return file.block_of[op.index()] >= to; };
  PartCargo cargo;
  for (size_t i = 0; i < graph.num_tensors(); ++i) {
    const auto& t = graph.tensor(TensorId(i));
    if (std::none_of(t.consumers.begin(), t.consumers.end(), behind)) continue;
    if (t.producer.valid()) {
      if (!behind(t.producer)) cargo.features.push_back(static_cast<uint32_t>(i));
      continue;
    }
    for (uint32_t k = 0; k < model.served.inputs.size(); ++k)
      if (model.served.inputs[k].name == t.name) cargo.inputs.push_back(k);
  }
  return cargo;
}

Result<std::vector<PartRow>> rows_from_inputs(const LocalModel& model,
                                              const std::vector<std::string>& payloads) {
  size_t all = 0;
  for (const auto& info : model.served.inputs) all += row_bytes(info);
  std::vector<PartRow> rows;
  rows.reserve(payloads.size());
  for (const auto& payload : payloads) {
    if (!payload.empty() && payload.size() != all) return wrong_size("a request's row", payload.size(), all);
    auto& row = rows.emplace_back(empty_row(model));
    if (payload.empty()) {  // of a request whose outcome is settled
      for (size_t i = 0; i < row.inputs.size(); ++i) {
        row.own_inputs[i].resize(row_bytes(model.served.inputs[i]));
        row.inputs[i] = row.own_inputs[i].data();
      }
      continue;
    }
    const auto* from = reinterpret_cast<const std::byte*>(payload.data());
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      const size_t bytes = row_bytes(model.served.inputs[i]);
      row.own_inputs[i].assign(from, from + bytes);
      row.inputs[i] = row.own_inputs[i].data();
      from += bytes;
    }
  }
  return rows;
}

Result<std::vector<PartRow>> rows_from_sections(const LocalModel& model, uint32_t rows,
                                                const MapSections& sections) {
  std::vector<PartRow> out;
  for (uint32_t r = 0; r < rows; ++r) out.push_back(empty_row(model));
  for (const auto& s : sections) {
    const bool feature = s.kind == MapSection::Kind::kFeature;
    const bool input = s.kind == MapSection::Kind::kInput;
    const auto& infos = input ? model.served.inputs : model.served.outputs;
    if (s.row >= rows || (!feature && s.index >= infos.size()))
      return invalid_input("the feature map has rows or tensors that the model does not have");
    auto& row = out[s.row];
    if (feature) {
      row.features.emplace_back(s.index, s.bytes);  // its reader checks the size
      continue;
    }
    if (s.bytes.size() != row_bytes(infos[s.index]))
      return wrong_size("'" + infos[s.index].name + "'", s.bytes.size(), row_bytes(infos[s.index]));
    auto& to = (input ? row.own_inputs : row.own_outputs)[s.index];
    to = s.bytes;
    if (input) row.inputs[s.index] = to.data();
  }
  return out;
}

void prepare_outputs(const LocalModel& model, std::vector<PartRow>& rows) {
  for (auto& row : rows)
    for (size_t o = 0; o < row.own_outputs.size(); ++o) {
      auto& own = row.own_outputs[o];
      own.resize(row_bytes(model.served.outputs[o]));
      row.outputs[o] = own.data();
    }
}

MapSections sections_of(const LocalModel& model, const PartCargo& cargo, const FleetModelFile& file, int to,
                        std::vector<PartRow>& rows) {
  const auto& graph = *model.sizes.at(1)->graph();
  MapSections sections;
  for (uint32_t r = 0; r < rows.size(); ++r) {
    auto& row = rows[r];
    for (const uint32_t i : cargo.inputs)
      if (row.inputs[i] != nullptr)
        sections.push_back({r, MapSection::Kind::kInput, i, std::move(row.own_inputs[i])});
    for (auto& [tensor, bytes] : row.features)
      if (std::binary_search(cargo.features.begin(), cargo.features.end(), tensor))
        sections.push_back({r, MapSection::Kind::kFeature, tensor, std::move(bytes)});
    for (const auto id : graph.outputs()) {
      if (file.block_of[graph.tensor(id).producer.index()] >= to) continue;
      for (uint32_t o = 0; o < row.own_outputs.size(); ++o)
        if (model.served.outputs[o].name == graph.tensor(id).name && !row.own_outputs[o].empty())
          sections.push_back({r, MapSection::Kind::kOutput, o, std::move(row.own_outputs[o])});
    }
  }
  return sections;
}

std::string outputs_text(const PartRow& row) {
  std::string text;
  for (const auto& own : row.own_outputs) text.append(reinterpret_cast<const char*>(own.data()), own.size());
  return text;
}

}  // namespace heddle
