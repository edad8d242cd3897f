#include "own_shapes.h"

#include "heddle/base/spelling.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/run.h"
#include "split_check.h"

namespace heddle {
namespace {

Result<size_t> place_of(const std::string& name, const std::vector<TensorInfo>& infos) {
  for (size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == name) return i;
  return internal_error("the tensor " + quote_text(name) + " is not one that is served");
}

std::vector<DType> types_of(const std::vector<TensorInfo>& infos) {
  std::vector<DType> types;
  for (const auto& info : infos) types.push_back(info.dtype);
  return types;
}

}  // namespace

Result<OpenModel> open_model(const LocalModel& local, const NamedShapes& largest, const NamedShapes& open) {
  ImportOptions options;
  options.shapes = local.source.settings.shapes;
  options.values = local.source.settings.values;
  OpenModel out;
  HEDDLE_ASSIGN_OR_RETURN(out.model,
                          VaryingModel::load(local.source.path, options.at_batch(1), largest, open));
  for (const auto& name : out.model->inputs()) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t place, place_of(name, local.served.inputs));
    out.inputs.push_back(place);
  }
  const auto& graph = *local.sizes.begin()->second->graph();
  const size_t sized = local.sizes.begin()->second->sized_outputs().size();
  for (size_t o = 0; o + sized < graph.outputs().size(); ++o) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t place,
                            place_of(graph.tensor(graph.outputs()[o]).name, local.served.outputs));
    out.outputs.push_back(place);
  }
  out.batched = local.served.batched;
  return out;
}

Result<std::vector<Shape>> output_rows(const OpenModel& open, const ServedModel& served,
                                       std::span<const Shape> inputs) {
  NamedShapes shapes;
  for (const size_t place : open.inputs) {
    auto& shape = shapes[served.inputs[place].name];
    shape = inputs[place];
    if (open.batched) shape.insert(shape.begin(), 1);
  }
  HEDDLE_ASSIGN_OR_RETURN(auto found, open.model->output_shapes(shapes));
  if (found.size() != open.outputs.size())
    return internal_error("the model has other outputs than those that are served");
  std::vector<Shape> rows(served.outputs.size());
  // Those without an output of the file hold true shapes, whose size never varies.
  for (size_t o = 0; o < rows.size(); ++o) rows[o] = served.outputs[o].row;
  for (size_t k = 0; k < found.size(); ++k) {
    auto& row = rows[open.outputs[k]];
    row = std::move(found[k]);
    if (!open.batched) continue;
    // What the engine cannot tell ahead has been seen: the trial with several rows gave an output for each.
    if (row.empty() || (row.front() >= 0 && row.front() != 1))
      return invalid_input("an output has no row for each row of the inputs");
    row.erase(row.begin());
  }
  return rows;
}

Result<std::shared_ptr<OwnShapeRunner>> OwnShapeRunner::create(const OpenModel& open,
                                                               const ServedModel& served,
                                                               const Device& device) {
  HEDDLE_ASSIGN_OR_RETURN(const auto engine, open_varying(open.model, device));
  std::shared_ptr<OwnShapeRunner> runner(
      new OwnShapeRunner(open, types_of(served.inputs), types_of(served.outputs), device.cores));
  HEDDLE_ASSIGN_OR_RETURN(runner->request_, engine->request());
  return runner;
}

Status OwnShapeRunner::run(std::span<LiveRequest* const> batch) {
  const std::lock_guard lock(mutex_);
  for (auto* request : batch) {
    const auto& row = *static_cast<TensorRow*>(request);
    std::vector<TensorView> inputs, outputs;
    for (const size_t place : open_.inputs) {
      const auto& shape = (*row.input_shapes)[place];
      // Only read.
      inputs.push_back({inputs_[place], shape, const_cast<std::byte*>(row.inputs[place]),
                        tensor_bytes(inputs_[place], shape).value_or(0)});
    }
    for (const size_t place : open_.outputs) {
      const auto& shape = (*row.output_shapes)[place];
      outputs.push_back(
          {outputs_[place], shape, row.outputs[place], tensor_bytes(outputs_[place], shape).value_or(0)});
    }
    HEDDLE_RETURN_IF_ERROR(request_->run(inputs, outputs));
  }
  return {};
}

Result<double> OwnShapeRunner::measure(const ServedBucket& bucket, double seconds, const Deadline& deadline) {
  const AffinityGuard bound(cores_);
  ProbeRow row;
  std::vector<TensorValue> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(auto value, make_tensor(inputs_[i], bucket.inputs[i]));
    fill_random(value.view(), i + 1);
    row.inputs.push_back(value.data.get());
    inputs.push_back(std::move(value));
  }
  row.outputs.assign(outputs_.size(), nullptr);
  row.input_shapes = &bucket.inputs;
  row.output_shapes = &bucket.outputs;
  LiveRequest* const batch[] = {&row};
  HEDDLE_RETURN_IF_ERROR(run(batch));  // the first run of a shape compiles for it
  return median_run_us(seconds, deadline, [&] { return run(batch); });
}

}  // namespace heddle
