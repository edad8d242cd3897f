#include "local_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "heddle/fleet/random.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/blocking_device.h"
#include "heddle/runtime/sampling.h"
#include "plane/fault.h"
#include "protocol/half_rows.h"
#include "split_check.h"

namespace heddle {
namespace {

// A row among others may be summed in another order than alone.
constexpr double kRowRtol = 1e-3, kRowAtol = 1e-4;

std::vector<size_t> places_among(std::span<const TensorInfo> infos, const std::string& name) {
  std::vector<size_t> places;
  for (size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == name) places.push_back(i);
  return places;
}

template <class Row>
auto* feature_of(Row& row, TensorId tensor) {
  for (auto& [id, bytes] : row.features)
    if (id == tensor.index()) return &bytes;
  return static_cast<decltype(&row.features.front().second)>(nullptr);
}

}  // namespace

Status LocalRunner::add_ports(const Graph& graph, const SegmentModel& cut) {
  const auto& served = model_->served;
  const auto port = [&](TensorId id) {
    const auto& t = graph.tensor(id);
    Port p;
    p.tensor = id;
    p.row_bytes = static_cast<size_t>(t.bytes);
    p.half = options_.fp16_cuts && t.dtype == DType::kF32;
    return p;
  };
  for (const auto id : cut.inputs) {
    Port p = port(id);
    p.crosses = graph.tensor(id).producer.valid();
    if (!p.crosses) p.places = places_among(served.inputs, graph.tensor(id).name);
    if (!p.crosses && p.places.empty())
      return Error(Code::kInternal, "the input '" + graph.tensor(id).name + "' is not one of the model's");
    inputs_.push_back(std::move(p));
  }
  const std::set<OpId> own(ops_.begin(), ops_.end());
  for (const auto id : cut.outputs) {
    Port p = port(id);
    p.places = places_among(served.outputs, graph.tensor(id).name);
    for (const auto reader : graph.tensor(id).consumers) p.crosses |= !own.contains(reader);
    outputs_.push_back(std::move(p));
  }
  return {};
}

Status LocalRunner::add_size(int size, const std::shared_ptr<const Model>& model) {
  HEDDLE_ASSIGN_OR_RETURN(const auto cut, model->cut(ops_));
  const auto& graph = *model->graph();
  const auto& base = *model_->sizes.at(1)->graph();
  if (sizes_.empty()) HEDDLE_RETURN_IF_ERROR(add_ports(base, cut));  // the first is batch 1
  SegmentSpec spec;
  spec.name = (ops_.size() < base.num_ops() ? "a part of " : "") + model_->served.name + " at batch " +
              std::to_string(size);
  spec.model = model;
  spec.finest_ops = ops_;
  Size s;
  const auto add = [&](std::span<const TensorId> ids, std::span<const Port> ports,
                       std::vector<SegmentTensor>& tensors, std::vector<TensorValue>& values) -> Status {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto& t = graph.tensor(ids[i]);
      if (ids.size() != ports.size() || ids[i] != ports[i].tensor)
        return Error(Code::kUnsupported,
                     "at batch " + std::to_string(size) +
                         " the model has other tensors than at batch 1; plan for batch 1");
      if (size > 1 && !has_rows(base.tensor(ids[i]), t, size))
        return Error(Code::kUnsupported, "the tensor '" + t.name +
                                             "' crosses a cut and its first dimension is not that of the "
                                             "batch; cut elsewhere, or plan for batch 1");
      tensors.push_back({t.name, t.dtype, t.shape, t.bytes});
      HEDDLE_ASSIGN_OR_RETURN(auto value, make_tensor(t.dtype, t.shape));
      values.push_back(std::move(value));
    }
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(add(cut.inputs, inputs_, spec.inputs, s.inputs));
  HEDDLE_RETURN_IF_ERROR(add(cut.outputs, outputs_, spec.outputs, s.outputs));
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
  std::vector<OpId> all;
  for (size_t op = 0; op < model->sizes.at(1)->graph()->num_ops(); ++op) all.emplace_back(op);
  return create(std::move(model), std::move(all), device, {});
}

Result<std::shared_ptr<LocalRunner>> LocalRunner::create(std::shared_ptr<const LocalModel> model,
                                                         std::vector<OpId> ops, const Device& device,
                                                         const PartOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_cores(device.cores, device.name));
  if (fault_at(FaultPoint::kCompile)) return fault_error();
  std::shared_ptr<LocalRunner> runner(new LocalRunner(std::move(model), std::move(ops), device, options));
  HEDDLE_ASSIGN_OR_RETURN(runner->open_, open_blocking_device(device));
  for (const auto& [size, at] : runner->model_->sizes) HEDDLE_RETURN_IF_ERROR(runner->add_size(size, at));
  return runner;
}

Status LocalRunner::run(std::span<LiveRequest* const> batch) {
  const auto began = std::chrono::steady_clock::now();
  HEDDLE_RETURN_IF_ERROR(compute(batch));
  if (options_.slowdown > 1)
    std::this_thread::sleep_for((std::chrono::steady_clock::now() - began) * (options_.slowdown - 1));
  return {};
}

Status LocalRunner::compute(std::span<LiveRequest* const> batch) {
  const auto it = sizes_.lower_bound(static_cast<int>(batch.size()));
  if (it == sizes_.end())
    return Error(Code::kInternal, "a batch of " + std::to_string(batch.size()) + " is larger than planned");
  auto& size = it->second;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Port& port = inputs_[i];
    for (size_t r = 0; r < batch.size(); ++r) {
      auto& row = *static_cast<TensorRow*>(batch[r]);
      std::byte* const to = size.inputs[i].data.get() + r * port.row_bytes;
      if (!port.crosses) {
        std::memcpy(to, row.inputs[port.places.front()], port.row_bytes);
        continue;
      }
      const auto* from = feature_of(row, port.tensor);
      if (from == nullptr)  // an earlier part has failed for this row, and its fate is settled
        std::memset(to, 0, port.row_bytes);
      else if (port.half)
        halves_to_floats(from->data(), port.row_bytes / sizeof(float), to);
      else
        std::memcpy(to, from->data(), port.row_bytes);
    }
  }
  HEDDLE_RETURN_IF_ERROR(size.segment->run(0));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Port& port = outputs_[i];
    for (size_t r = 0; r < batch.size(); ++r) {
      auto& row = *static_cast<TensorRow*>(batch[r]);
      const std::byte* const from = size.outputs[i].data.get() + r * port.row_bytes;
      for (const size_t place : port.places)
        if (auto* to = row.outputs[place]) std::memcpy(to, from, port.row_bytes);  // null: not asked for
      if (!port.crosses) continue;
      auto* to = feature_of(row, port.tensor);
      if (to == nullptr)
        to = &row.features.emplace_back(static_cast<uint32_t>(port.tensor.index()), std::vector<std::byte>())
                  .second;
      to->resize(port.kept_bytes());
      if (port.half)
        floats_to_halves(from, port.row_bytes / sizeof(float), to->data());
      else
        std::memcpy(to->data(), from, port.row_bytes);
    }
  }
  return {};
}

Status LocalRunner::check_row(const TensorRow& row) const {
  const auto& graph = *model_->sizes.at(1)->graph();
  for (const auto& port : inputs_) {
    const auto* feature = port.crosses ? feature_of(row, port.tensor) : nullptr;
    const bool there = port.crosses ? feature != nullptr && feature->size() == port.kept_bytes()
                                    : row.inputs[port.places.front()] != nullptr;
    if (!there)
      return Error(Code::kInternal, "the tensor '" + graph.tensor(port.tensor).name +
                                        "' did not come with the row, or not in its size of " +
                                        std::to_string(port.kept_bytes()) + " bytes");
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
  Random random = random_stream(1, 0x5e);
  auto& one = sizes_.begin()->second;
  for (auto& [size, s] : sizes_) {
    if (size == 1) continue;
    for (auto& t : s.inputs) fill_with_random(t, random);
    HEDDLE_RETURN_IF_ERROR(s.segment->run(0));
    for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const auto bytes = inputs_[i].row_bytes;
        std::memcpy(one.inputs[i].data.get(), s.inputs[i].data.get() + r * bytes, bytes);
      }
      HEDDLE_RETURN_IF_ERROR(one.segment->run(0));
      for (size_t i = 0; i < outputs_.size(); ++i) {
        auto row = s.outputs[i].view();
        const auto alone = one.outputs[i].view();
        row.shape = alone.shape;
        row.bytes = alone.bytes;
        row.data += r * outputs_[i].row_bytes;
        if (!compare_tensors(row, alone, kRowRtol, kRowAtol).equal)
          return Error(Code::kVerificationFailed,
                       "at batch " + std::to_string(size) + " row " + std::to_string(r) + " of '" +
                           model_->sizes.at(1)->graph()->tensor(outputs_[i].tensor).name +
                           "' differs from what it is alone");
      }
    }
  }
  return {};
}

}  // namespace heddle
