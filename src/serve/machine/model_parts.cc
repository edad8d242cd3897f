#include "model_parts.h"

namespace heddle {

std::vector<OpId> ops_of_blocks(const FleetModelFile& file, int block_from, int block_to) {
  std::vector<OpId> ops;
  for (size_t op = 0; op < file.block_of.size(); ++op)
    if (file.block_of[op] >= block_from && file.block_of[op] < block_to) ops.emplace_back(op);
  return ops;
}

Result<std::shared_ptr<const LocalModel>> ModelParts::load(const std::string& name,
                                                           const FleetModelFile& file, int max_batch) {
  forget_unused();
  for (const auto& had : models_)
    if (auto model = had.model.lock(); model && had.file.path == file.path && had.file.hash == file.hash &&
                                       had.file.shapes == file.shapes && had.max_batch >= max_batch &&
                                       model->served.name == name)
      return model;
  ModelSource source;
  source.name = name;
  source.version = "1";
  source.path = file.path;
  source.settings.shapes = file.shapes;
  source.settings.max_batch = max_batch;
  std::vector<int> sizes;
  for (int b = 1; b <= max_batch; ++b) sizes.push_back(b);
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const LocalModel> model, load_local_model(source, sizes));
  const auto& one = *model->sizes.at(1);
  if (one.file_hash() != file.hash)
    return invalid_input(file.path +
                         ": is another file than the one that was profiled; run `heddle "
                         "fleet profile` again");
  const auto ops = one.graph()->num_ops();
  if (ops != file.block_of.size())
    return invalid_input(file.path + ": has " + std::to_string(ops) + " ops, and the fleet file puts " +
                         std::to_string(file.block_of.size()) +
                         " into blocks; run `heddle fleet profile` again");
  if (static_cast<int>(model->sizes.size()) < max_batch)
    return invalid_input("the plan runs batches of " + std::to_string(max_batch) +
                         ", and the model has no dimension for a batch; plan for batch 1 "
                         "(profile with --batches 1)");
  models_.push_back({file, max_batch, model});
  return model;
}

Result<std::shared_ptr<PlanRunner>> ModelParts::part(const std::shared_ptr<const LocalModel>& model,
                                                     const FleetModelFile& file, int block_from, int block_to,
                                                     const Device& device, double slowdown) {
  auto ops = ops_of_blocks(file, block_from, block_to);
  auto& known =
      parts_[Key(model.get(), ops, device.name, device.cores, device.precision, file.fp16_cuts, slowdown)];
  if (auto part = known.lock()) return part;
  HEDDLE_ASSIGN_OR_RETURN(auto part,
                          PlanRunner::create(model, std::move(ops), device, {file.fp16_cuts, slowdown}));
  known = part;
  return part;
}

void ModelParts::forget_unused() {
  std::erase_if(models_, [](const Loaded& m) { return m.model.expired(); });
  std::erase_if(parts_, [](const auto& p) { return p.second.expired(); });
}

}  // namespace heddle
