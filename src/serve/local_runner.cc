#include "local_runner.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "fault.h"
#include "heddle/fleet/random.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/blocking_device.h"
#include "heddle/runtime/sampling.h"
#include "heddle/serve/infer_message.h"
#include "split_check.h"

namespace heddle {
namespace {

// A row among others may be summed in another order than alone.
constexpr double kRowRtol = 1e-3, kRowAtol = 1e-4;

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
      return Error(Code::kUnsupported, std::string(what) + " '" + t.name + "' is of type " +
                                           dtype_name(t.dtype) + ", which the protocol does not have");
    const auto bytes = tensor_bytes(t.dtype, t.shape);
    infos.push_back({t.name, t.dtype, t.shape, bytes.value_or(0)});
  }
  return infos;
}

// Has every tensor `rows` rows where the model at batch 1 has one, and is all else the same?
bool has_rows(const std::vector<TensorInfo>& one, const std::vector<TensorInfo>& many, int64_t rows) {
  if (one.size() != many.size()) return false;
  for (size_t i = 0; i < one.size(); ++i) {
    auto shape = one[i].row;
    if (shape.empty() || shape[0] != 1) return false;
    shape[0] = rows;
    if (many[i].name != one[i].name || many[i].dtype != one[i].dtype || many[i].row != shape) return false;
  }
  return true;
}

Result<std::shared_ptr<const Model>> load_at(const ModelSource& source, int64_t batch) {
  ImportOptions options;
  options.shapes = source.settings.shapes;
  options.batch = batch;
  // A shape that was given fixes the batch, too; what is dynamic there is the batch's to say.
  for (auto& [name, shape] : options.shapes)
    if (!shape.empty()) shape[0] = shape[0] == 1 ? batch : shape[0];
  return Model::load(source.path, options);
}

}  // namespace

Result<std::shared_ptr<LocalModel>> load_local_model(const ModelSource& source, std::vector<int> sizes) {
  if (fault_at(FaultPoint::kLoad)) return fault_error();
  auto local = std::make_shared<LocalModel>();
  local->source = source;
  HEDDLE_ASSIGN_OR_RETURN(const auto one, load_at(source, 1));
  local->sizes[1] = one;
  auto& served = local->served;
  served.name = source.name;
  served.version = source.version;
  served.platform = source.path.ends_with(".onnx") ? "onnx" : "openvino";
  const auto& graph = *one->graph();
  HEDDLE_ASSIGN_OR_RETURN(served.inputs, tensor_infos(graph, graph.inputs(), "the input"));
  HEDDLE_ASSIGN_OR_RETURN(served.outputs, tensor_infos(graph, graph.outputs(), "the output"));
  for (const auto id : graph.outputs())
    if (!graph.tensor(id).producer.valid())
      return Error(Code::kUnsupported, source.path + ": the output '" + graph.tensor(id).name +
                                           "' is an input or a constant; nothing computes it");
  if (sizes.empty())
    for (int size = 1; size <= source.settings.max_batch; size *= 2) sizes.push_back(size);
  for (const int size : sizes) {
    if (size == 1) continue;
    const auto more = load_at(source, size);
    std::vector<TensorInfo> inputs, outputs;
    if (more.ok()) {
      HEDDLE_ASSIGN_OR_RETURN(inputs,
                              tensor_infos(*(*more)->graph(), (*more)->graph()->inputs(), "the input"));
      HEDDLE_ASSIGN_OR_RETURN(outputs,
                              tensor_infos(*(*more)->graph(), (*more)->graph()->outputs(), "the output"));
    }
    if (!more.ok() || !has_rows(served.inputs, inputs, size) || !has_rows(served.outputs, outputs, size)) {
      if (local->sizes.size() == 1)
        served.note = "its first dimension is not that of a batch: requests run one by one";
      break;
    }
    local->sizes[size] = *more;
    served.max_rows = size;
  }
  served.batched = local->sizes.size() > 1;
  if (served.batched)
    for (auto* infos : {&served.inputs, &served.outputs})
      for (auto& t : *infos) t.row.erase(t.row.begin());
  return local;
}

Status LocalRunner::add_size(int size, const std::shared_ptr<const Model>& model) {
  const auto& graph = *model->graph();
  SegmentSpec spec;
  spec.name = model_->served.name + " at batch " + std::to_string(size);
  spec.model = model;
  for (size_t op = 0; op < graph.num_ops(); ++op) spec.finest_ops.emplace_back(op);
  Size s;
  const auto add = [&graph](std::span<const TensorId> ids, std::vector<SegmentTensor>& tensors,
                            std::vector<TensorValue>& values) -> Status {
    for (const auto id : distinct(ids)) {
      const auto& t = graph.tensor(id);
      tensors.push_back({t.name, t.dtype, t.shape, t.bytes});
      HEDDLE_ASSIGN_OR_RETURN(auto value, make_tensor(t.dtype, t.shape));
      values.push_back(std::move(value));
    }
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(add(graph.inputs(), spec.inputs, s.inputs));
  HEDDLE_RETURN_IF_ERROR(add(graph.outputs(), spec.outputs, s.outputs));
  HEDDLE_ASSIGN_OR_RETURN(s.segment, open_->compile(spec, 1));
  std::vector<TensorView> in, out;
  for (const auto& v : s.inputs) in.push_back(v.view());
  for (const auto& v : s.outputs) out.push_back(v.view());
  HEDDLE_RETURN_IF_ERROR(s.segment->bind(0, in, out));
  sizes_.emplace(size, std::move(s));
  return {};
}

Result<std::shared_ptr<LocalRunner>> LocalRunner::create(std::shared_ptr<const LocalModel> model,
                                                         const Device& device) {
  HEDDLE_RETURN_IF_ERROR(check_cores(device.cores, device.name));
  if (fault_at(FaultPoint::kCompile)) return fault_error();
  std::shared_ptr<LocalRunner> runner(new LocalRunner(std::move(model), device));
  HEDDLE_ASSIGN_OR_RETURN(runner->open_, open_blocking_device(device));
  for (const auto& [size, at] : runner->model_->sizes) HEDDLE_RETURN_IF_ERROR(runner->add_size(size, at));
  return runner;
}

Status LocalRunner::run(std::span<LiveRequest* const> batch) {
  const auto it = sizes_.lower_bound(static_cast<int>(batch.size()));
  if (it == sizes_.end())
    return Error(Code::kInternal, "a batch of " + std::to_string(batch.size()) + " is larger than planned");
  auto& size = it->second;
  const auto& served = model_->served;
  for (size_t i = 0; i < served.inputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(served.inputs[i].row_bytes);
    for (size_t r = 0; r < batch.size(); ++r)
      std::memcpy(size.inputs[i].data.get() + r * bytes, static_cast<TensorRow*>(batch[r])->inputs[i], bytes);
  }
  HEDDLE_RETURN_IF_ERROR(size.segment->run(0));
  for (size_t i = 0; i < served.outputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(served.outputs[i].row_bytes);
    for (size_t r = 0; r < batch.size(); ++r)
      if (auto* to = static_cast<TensorRow*>(batch[r])->outputs[i])  // null: not asked for
        std::memcpy(to, size.outputs[i].data.get() + r * bytes, bytes);
  }
  return {};
}

Result<std::vector<double>> LocalRunner::measure(double seconds, const Deadline& deadline) {
  const AffinityGuard bound(device_.cores);
  std::vector<double> us;
  for (auto& [size, s] : sizes_) {
    HEDDLE_RETURN_IF_ERROR(s.segment->run(0));  // the first run allocates
    std::vector<double> times;
    const int64_t begin = live_now();
    do {
      if (deadline.should_stop()) return Error(Code::kCancelled, "stopped while measuring");
      const int64_t start = live_now();
      HEDDLE_RETURN_IF_ERROR(s.segment->run(0));
      times.push_back(static_cast<double>(live_now() - start) / 1e3);
    } while (times.size() < 3 || static_cast<double>(live_now() - begin) < seconds * 1e9);
    // A batch between two sizes runs at the larger one.
    us.resize(static_cast<size_t>(size), std::max(median_us(times), 1e-3));
  }
  return us;
}

Status LocalRunner::check_rows() {
  const auto& served = model_->served;
  Random random = random_stream(1, 0x5e);
  auto& one = sizes_.begin()->second;
  for (auto& [size, s] : sizes_) {
    if (size == 1) continue;
    for (auto& t : s.inputs) fill_with_random(t, random);
    HEDDLE_RETURN_IF_ERROR(s.segment->run(0));
    for (int r = 0; r < size; ++r) {
      for (size_t i = 0; i < served.inputs.size(); ++i) {
        const auto bytes = static_cast<size_t>(served.inputs[i].row_bytes);
        std::memcpy(one.inputs[i].data.get(), s.inputs[i].data.get() + static_cast<size_t>(r) * bytes, bytes);
      }
      HEDDLE_RETURN_IF_ERROR(one.segment->run(0));
      for (size_t i = 0; i < served.outputs.size(); ++i) {
        auto row = s.outputs[i].view();
        const auto alone = one.outputs[i].view();
        row.shape = alone.shape;
        row.bytes = alone.bytes;
        row.data += static_cast<int64_t>(r) * served.outputs[i].row_bytes;
        if (!compare_tensors(row, alone, kRowRtol, kRowAtol).equal)
          return Error(Code::kVerificationFailed, "at batch " + std::to_string(size) + " row " +
                                                      std::to_string(r) + " of '" + served.outputs[i].name +
                                                      "' differs from what it is alone");
      }
    }
  }
  return {};
}

}  // namespace heddle
