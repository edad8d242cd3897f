#include "fleet_blocks.h"

#include <algorithm>
#include <filesystem>

#include "heddle/base/errors.h"
#include "heddle/runtime/profiler.h"

namespace heddle {
namespace {

// Halves the bytes of float32 tensors that cross cuts. The first and the last cut are a request's own tensors
// and keep their type.
void halve_cuts(const Graph& graph, const std::vector<int>& block_of, std::vector<double>& cut_bytes) {
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const auto& tensor = graph.tensor(TensorId(t));
    if (tensor.dtype != DType::kF32 || !tensor.producer.valid()) continue;
    int last = block_of[tensor.producer.index()];
    for (const auto reader : tensor.consumers) last = std::max(last, block_of[reader.index()]);
    for (int k = block_of[tensor.producer.index()] + 1; k <= last; ++k)
      cut_bytes[static_cast<size_t>(k)] -= static_cast<double>(tensor.bytes) / 2;
  }
}

// The model's path and the ops of each block, for devices that run it.
FleetModelFile file_of(const Model& model, const ModelSpec& source, const BlockSettings& settings) {
  namespace fs = std::filesystem;
  FleetModelFile file;
  std::error_code error;
  const auto path = fs::absolute(source.path, error);
  const auto folder = fs::absolute(settings.output, error).parent_path();
  file.path = path.lexically_normal().lexically_proximate(folder.lexically_normal()).string();
  file.hash = model.file_hash();
  file.shapes = source.import.shapes;
  file.fp16_cuts = settings.fp16_cuts;
  return file;
}

}  // namespace

Result<CutModel> cut_into_blocks(const LoadedModel& loaded, const ModelSpec& source, const Graph& units,
                                 const std::vector<std::vector<double>>& us, const BlockSettings& settings) {
  HEDDLE_ASSIGN_OR_RETURN(
      const auto parts, with_context(prepartition(units, us, settings.blocks, settings.method), source.path));
  CutModel cut;
  FleetModel& model = cut.model;
  model.name = loaded.name;
  model.blocks = static_cast<int>(parts.blocks.size());
  model.cut_bytes = parts.cut_bytes;
  for (const double b : parts.parameter_bytes) model.parameter_bytes.push_back(static_cast<int64_t>(b));
  for (const auto& ops : parts.blocks) cut.blocks.push_back(finest_ops(units, ops));
  std::vector<int> block_of(loaded.graph->num_ops(), 0);
  for (size_t k = 0; k < cut.blocks.size(); ++k)
    for (const auto op : cut.blocks[k]) block_of[op.index()] = static_cast<int>(k);
  if (settings.fp16_cuts) halve_cuts(*loaded.graph, block_of, model.cut_bytes);
  if (loaded.model) {
    model.file = file_of(*loaded.model, source, settings);
    model.file.block_of = std::move(block_of);
  }
  return cut;
}

double note_source(FleetModel& model, size_t device_class, const Cost& cost) {
  if (model.times_from.size() <= device_class) model.times_from.resize(device_class + 1);
  auto& from = model.times_from[device_class];
  if (!from) from = {cost.origin, cost.error_factor()};
  from->origin = std::max(from->origin, cost.origin);
  from->error_factor = std::max(from->error_factor, cost.error_factor());
  return cost.us;
}

}  // namespace heddle
