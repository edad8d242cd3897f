#include "local_model.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "heddle/base/errors.h"
#include "heddle/graph/model_content.h"
#include "heddle/serve/infer_message.h"
#include "plane/fault.h"

namespace heddle {
namespace {

// The graph's tensors, each name once, in order.
std::vector<TensorId> distinct(std::span<const TensorId> tensors) {
  std::vector<TensorId> out;
  for (const auto t : tensors)
    if (std::find(out.begin(), out.end(), t) == out.end()) out.push_back(t);
  return out;
}

Result<std::vector<TensorInfo>> tensor_infos(const Graph& graph, std::span<const TensorId> tensors,
                                             const char* what) {
  std::vector<TensorInfo> infos;
  for (const auto id : distinct(tensors)) {
    const auto& t = graph.tensor(id);
    if (protocol_name(t.dtype) == nullptr)
      return unsupported(std::string(what) + " '" + t.name + "' is of type " + dtype_name(t.dtype) +
                         ", which the protocol does not have");
    const auto bytes = tensor_bytes(t.dtype, t.shape);
    infos.push_back({t.name, t.dtype, t.shape, bytes.value_or(0)});
  }
  return infos;
}

bool all_have_rows(const Graph& one, const Graph& many, std::span<const TensorId> of_one,
                   std::span<const TensorId> of_many, int64_t rows) {
  const auto a = distinct(of_one), b = distinct(of_many);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](TensorId x, TensorId y) { return has_rows(one.tensor(x), many.tensor(y), rows); });
}

Result<std::shared_ptr<const Model>> load_at(const ModelSource& source, int64_t batch) {
  ImportOptions options;
  options.shapes = source.settings.shapes;
  options.values = source.settings.values;
  return Model::load(source.path, options.at_batch(batch));
}

// The model's states: those of the file, and those that the settings name.
Status describe_state(const ModelSource& source, const Model& model, ServedModel& served) {
  HEDDLE_ASSIGN_OR_RETURN(auto states, with_context(states_with(model, source.settings.state), source.path));
  if (states.empty()) return {};
  auto state = std::make_shared<SessionState>();
  state->idle_ns = ns_from_us(source.settings.session_idle_us);
  const auto take = [](std::vector<TensorInfo>& tensors, const std::string& name) {
    const auto it = std::ranges::find(tensors, name, &TensorInfo::name);
    it->state = true;
    return static_cast<size_t>(it - tensors.begin());
  };
  for (auto& s : states) {
    const size_t input = take(served.inputs, s.input);
    state->tensors.push_back(
        {input, take(served.outputs, s.output), served.inputs[input].row_bytes, std::move(s.initial)});
  }
  served.state = std::move(state);
  return {};
}

// The first dimension of all tensors is that of the batch, of `rows` rows.
void divide_rows(ServedModel& served, int64_t rows) {
  served.batched = true;
  for (auto* infos : {&served.inputs, &served.outputs})
    for (auto& t : *infos) {
      t.row.erase(t.row.begin());
      t.row_bytes /= rows;
    }
  if (served.state == nullptr) return;
  auto state = std::make_shared<SessionState>(*served.state);
  for (auto& t : state->tensors) {
    t.row_bytes /= rows;
    t.initial.resize(t.initial.size() / static_cast<size_t>(rows));
  }
  served.state = std::move(state);
}

Result<ServedModel> describe(const ModelSource& source, const Model& model) {
  const Graph& graph = *model.graph();
  ServedModel served;
  served.name = source.name;
  served.version = source.version;
  served.platform = source.path.ends_with(".onnx") ? "onnx" : "openvino";
  served.priority_levels = source.settings.priority_levels;
  served.default_priority = source.settings.default_priority;
  HEDDLE_ASSIGN_OR_RETURN(served.inputs, tensor_infos(graph, graph.inputs(), "the input"));
  HEDDLE_ASSIGN_OR_RETURN(served.outputs, tensor_infos(graph, graph.outputs(), "the output"));
  for (const auto id : graph.outputs())
    if (!graph.tensor(id).producer.valid())
      return unsupported(source.path + ": the output '" + graph.tensor(id).name +
                         "' is an input or a constant; nothing computes it");
  const auto index_of = [&](size_t output) {
    const auto& name = graph.tensor(graph.outputs()[output]).name;
    return std::ranges::find(served.outputs, name, &TensorInfo::name) - served.outputs.begin();
  };
  for (const auto& sized : model.sized_outputs()) {
    auto& output = served.outputs[static_cast<size_t>(index_of(sized.output))];
    output.true_shape = static_cast<int>(index_of(sized.shape));
    output.open = sized.open;
    served.outputs[static_cast<size_t>(output.true_shape)].hidden = true;
  }
  HEDDLE_RETURN_IF_ERROR(describe_state(source, model, served));
  return served;
}

}  // namespace

void join_rows(ServedModel& served) {
  const auto rows = static_cast<size_t>(served.max_rows);
  served.batched = false;
  for (auto* infos : {&served.inputs, &served.outputs})
    for (auto& t : *infos) {
      t.row.insert(t.row.begin(), served.max_rows);
      t.row_bytes *= served.max_rows;
    }
  if (served.state == nullptr) return;
  auto state = std::make_shared<SessionState>(*served.state);
  for (auto& t : state->tensors) {
    t.row_bytes *= served.max_rows;
    const auto row = t.initial;
    for (size_t r = 1; r < rows; ++r) t.initial.insert(t.initial.end(), row.begin(), row.end());
  }
  served.state = std::move(state);
}

double served_slo_us(const ModelSettings& settings, double request_us) {
  constexpr double kLeastSlo_us = 1e6, kSloFactor = 10;
  return settings.slo_us > 0 ? settings.slo_us : std::max(kLeastSlo_us, kSloFactor * request_us);
}

bool has_rows(const Tensor& one, const Tensor& many, int64_t rows) {
  auto shape = one.shape;
  if (shape.empty() || shape[0] != 1) return false;
  shape[0] = rows;
  return many.name == one.name && many.dtype == one.dtype && many.shape == shape;
}

Result<std::shared_ptr<LocalModel>> load_local_model(const ModelSource& source, std::vector<int> sizes) {
  if (fault_at(FaultPoint::kLoad)) return fault_error();
  auto local = std::make_shared<LocalModel>();
  local->source = source;
  HEDDLE_ASSIGN_OR_RETURN(const auto one, load_at(source, 1));
  local->sizes[1] = one;
  const auto& graph = *one->graph();
  auto& served = local->served;
  HEDDLE_ASSIGN_OR_RETURN(served, describe(source, *one));
  if (sizes.empty())
    for (int size = 1; size <= source.settings.max_batch; size *= 2) sizes.push_back(size);
  for (const int size : sizes) {
    if (size == 1) continue;
    const auto more = load_at(source, size);
    if (!more.ok() && is_untried(more.error())) return more.error();
    const Graph* many = more.ok() ? (*more)->graph().get() : nullptr;
    if (many == nullptr || !all_have_rows(graph, *many, graph.inputs(), many->inputs(), size) ||
        !all_have_rows(graph, *many, graph.outputs(), many->outputs(), size)) {
      if (local->sizes.size() == 1)
        served.note = "its first dimension is not that of a batch: requests run one by one";
      break;
    }
    local->sizes[size] = *more;
    served.max_rows = size;
  }
  if (local->sizes.size() > 1) divide_rows(served, 1);
  return local;
}

Result<std::shared_ptr<LocalModel>> planned_local_model(const ModelSource& source,
                                                        std::shared_ptr<const Model> model) {
  if (fault_at(FaultPoint::kLoad)) return fault_error();
  auto local = std::make_shared<LocalModel>();
  local->source = source;
  const auto& graph = *model->graph();
  auto& served = local->served;
  HEDDLE_ASSIGN_OR_RETURN(served, describe(source, *model));
  const auto& shape = graph.inputs().empty() ? Shape() : graph.tensor(graph.inputs().front()).shape;
  const int64_t rows = shape.empty() ? 1 : shape.front();
  if (rows > 1 && rows <= kMostServedBatch) {
    ImportOptions options = model->options();
    options.batch = 1;
    for (auto& [name, given] : options.shapes)
      if (!given.empty() && given.front() == rows) given.front() = 1;
    const auto one = Model::load(source.path, options);
    if (!one.ok() && is_untried(one.error())) return one.error();
    if (one.ok() && all_have_rows(*(*one)->graph(), graph, (*one)->graph()->inputs(), graph.inputs(), rows) &&
        all_have_rows(*(*one)->graph(), graph, (*one)->graph()->outputs(), graph.outputs(), rows)) {
      served.max_rows = static_cast<int>(rows);
      divide_rows(served, rows);
    }
  }
  local->sizes[served.max_rows] = std::move(model);
  return local;
}

}  // namespace heddle
