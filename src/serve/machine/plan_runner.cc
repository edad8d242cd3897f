#include "plan_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "heddle/base/ids.h"
#include "heddle/base/quantiles.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/model.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/run.h"
#include "plane/fault.h"
#include "protocol/half_rows.h"
#include "split_check.h"

namespace heddle {
namespace {

// What the executor needs for one batch size.
struct SizedPlan {
  Problem problem;
  Plan plan;
  std::shared_ptr<const Model> model;  // null: no device of the plan needs one
};

// One op that stands for all of them.
Result<std::shared_ptr<const Graph>> one_op_graph(const std::string& name, const Graph& graph,
                                                  std::span<const OpId> ops, const SegmentModel& cut) {
  const auto like = [&graph](TensorId id) {
    const auto& t = graph.tensor(id);
    Tensor copy;
    copy.name = t.name;
    copy.dtype = t.dtype;
    copy.shape = t.shape;
    copy.bytes = t.bytes;
    return copy;
  };
  GraphBuilder builder(name);
  Op op;
  op.name = name;
  op.type = "part";
  op.members.assign(ops.begin(), ops.end());
  for (const auto id : cut.inputs) op.inputs.push_back(builder.add_input(like(id)));
  if (const auto bytes = graph.param_bytes(ops); bytes > 0)
    op.params.push_back(builder.add_param({.name = "parameters", .bytes = bytes}));
  std::vector<Tensor> outputs;
  for (const auto id : cut.outputs) outputs.push_back(like(id));
  const auto id = builder.add_op(std::move(op), std::move(outputs));
  const auto made = builder.outputs_of(id);
  for (const auto output : std::vector<TensorId>(made.begin(), made.end())) builder.add_output(output);
  return builder.build();
}

// `ops` of the model's graph, ascending; `cut` is model->cut(ops), whose tensors become the graph's inputs
// and outputs, in that order.
Result<SizedPlan> one_device_plan(const std::string& name, std::shared_ptr<const Model> model,
                                  std::span<const OpId> ops, const SegmentModel& cut, const Device& device) {
  SizedPlan out;
  HEDDLE_ASSIGN_OR_RETURN(out.problem.graph, one_op_graph(name, *model->graph(), ops, cut));
  ClusterBuilder builder(device.name);
  Device here = device;
  here.variant_of.clear();  // it is alone here
  here.host = builder.add_host({.name = "host", .memory_bytes = 0});
  builder.add_device(std::move(here));
  HEDDLE_ASSIGN_OR_RETURN(out.problem.cluster, builder.build());
  auto costs = std::make_shared<CostTable>(1, 1);
  costs->set(OpId(0), DeviceId(0), {.us = 1, .origin = Origin::kEstimated});  // nothing is chosen by it
  out.problem.costs = std::move(costs);
  HEDDLE_ASSIGN_OR_RETURN(out.plan,
                          build_plan(out.problem, Assignment{.device = {DeviceId(0)}, .order = {OpId(0)}}));
  out.plan.segments.front().name = name;
  out.model = std::move(model);
  return out;
}

// A row among others may be summed in another order than alone.
constexpr double kRowRtol = 1e-3, kRowAtol = 1e-4;
// One segment waits for no other, and a server's other threads need the cores.
constexpr double kNoSpin_us = 0;

template <class Row>
auto* feature_of(Row& row, TensorId tensor) {
  for (auto& [id, bytes] : row.features)
    if (id == tensor.index()) return &bytes;
  return static_cast<decltype(&row.features.front().second)>(nullptr);
}

class SlotRunner final : public DeviceRunner {
 public:
  SlotRunner(std::shared_ptr<PlanRunner> runner, int slot) : runner_(std::move(runner)), slot_(slot) {}
  Status run(std::span<LiveRequest* const> batch) override { return runner_->run(slot_, batch); }
  std::vector<int> cores() const override { return runner_->cores(); }

 private:
  const std::shared_ptr<PlanRunner> runner_;
  const int slot_;
};

}  // namespace

std::shared_ptr<DeviceRunner> slot_runner(std::shared_ptr<PlanRunner> runner, int slot) {
  return std::make_shared<SlotRunner>(std::move(runner), slot);
}

// One of `rows` rows of the graph's tensor; its places are those of its name among `infos`.
PlanRunner::RowTensor PlanRunner::row_tensor(const Graph& graph, TensorId id, int rows,
                                             std::span<const TensorInfo> infos) {
  const auto& tensor = graph.tensor(id);
  RowTensor t{.id = id, .name = tensor.name, .row_bytes = static_cast<size_t>(tensor.bytes / rows)};
  for (size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == t.name) t.places.push_back(i);
  return t;
}

Status PlanRunner::add_part_tensors(const SegmentModel& cut, std::span<const OpId> ops) {
  const auto& served = model_->served;
  const auto& graph = *model_->sizes.at(1)->graph();
  for (const auto id : cut.inputs) {
    auto t = row_tensor(graph, id, 1, served.inputs);
    t.crosses = graph.tensor(id).producer.valid();
    if (!t.crosses && t.places.empty())
      return internal_error("the input '" + t.name + "' is not one of the model's");
    inputs_.push_back(std::move(t));
  }
  const std::set<OpId> own(ops.begin(), ops.end());
  for (const auto id : cut.outputs) {
    auto t = row_tensor(graph, id, 1, served.outputs);
    for (const auto reader : graph.tensor(id).consumers) t.crosses |= !own.contains(reader);
    outputs_.push_back(std::move(t));
  }
  for (auto* tensors : {&inputs_, &outputs_})
    for (auto& t : *tensors)
      t.half = t.crosses && options_.fp16_cuts && graph.tensor(t.id).dtype == DType::kF32;
  return {};
}

Status PlanRunner::add_part_size(int size, std::span<const OpId> ops, const Device& device) {
  const auto& model = model_->sizes.at(size);
  HEDDLE_ASSIGN_OR_RETURN(const auto cut, model->cut(ops));
  const auto& base = *model_->sizes.at(1)->graph();
  if (sizes_.empty()) HEDDLE_RETURN_IF_ERROR(add_part_tensors(cut, ops));  // the first is batch 1
  const auto check = [&](std::span<const TensorId> ids, std::span<const RowTensor> tensors) -> Status {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids.size() != tensors.size() || ids[i] != tensors[i].id)
        return unsupported("at batch " + std::to_string(size) +
                           " the model has other tensors than at batch 1; plan for batch 1");
      if (size > 1 && !has_rows(base.tensor(ids[i]), model->graph()->tensor(ids[i]), size))
        return unsupported("the tensor '" + tensors[i].name +
                           "' crosses a cut and its first dimension is not that of the "
                           "batch; cut elsewhere, or plan for batch 1");
    }
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(check(cut.inputs, inputs_));
  HEDDLE_RETURN_IF_ERROR(check(cut.outputs, outputs_));
  const auto name = (ops.size() < base.num_ops() ? "a part of " : "") + model_->served.name + " at batch " +
                    std::to_string(size);
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, one_device_plan(name, model, ops, cut, device));
  ExecutorOptions options;
  options.spin_us = kNoSpin_us;
  HEDDLE_ASSIGN_OR_RETURN(auto executor, Executor::create(plan.problem, plan.plan, plan.model, options));
  HEDDLE_RETURN_IF_ERROR(executor->open());
  sizes_.emplace(size, std::move(executor));
  return {};
}

Result<std::shared_ptr<PlanRunner>> PlanRunner::create(std::shared_ptr<const LocalModel> model,
                                                       const Device& device) {
  std::vector<OpId> all;
  for (size_t op = 0; op < model->sizes.at(1)->graph()->num_ops(); ++op) all.emplace_back(op);
  return create(std::move(model), std::move(all), device, {});
}

Result<std::shared_ptr<PlanRunner>> PlanRunner::create(std::shared_ptr<const LocalModel> model,
                                                       std::vector<OpId> ops, const Device& device,
                                                       const PartOptions& options) {
  if (fault_at(FaultPoint::kCompile)) return fault_error();
  std::shared_ptr<PlanRunner> runner(new PlanRunner(std::move(model), device.cores, options));
  for (const auto& [size, at] : runner->model_->sizes)
    HEDDLE_RETURN_IF_ERROR(runner->add_part_size(size, ops, device));
  return runner;
}

std::shared_ptr<PlanRunner> PlanRunner::create(std::shared_ptr<const LocalModel> model, const Graph& graph,
                                               std::shared_ptr<Executor> executor, std::vector<int> cores) {
  std::shared_ptr<PlanRunner> runner(new PlanRunner(std::move(model), std::move(cores), {}));
  runner->sizes_.emplace(runner->model_->served.max_rows, std::move(executor));
  if (!runner->moves_data()) return runner;
  const auto& served = runner->model_->served;
  for (const auto id : graph.inputs())
    runner->inputs_.push_back(row_tensor(graph, id, served.max_rows, served.inputs));
  for (const auto id : graph.outputs())
    runner->outputs_.push_back(row_tensor(graph, id, served.max_rows, served.outputs));
  return runner;
}

Status PlanRunner::run(int slot, std::span<LiveRequest* const> batch) {
  const auto began = std::chrono::steady_clock::now();
  HEDDLE_RETURN_IF_ERROR(compute(slot, batch));
  if (options_.slowdown > 1)
    std::this_thread::sleep_for((std::chrono::steady_clock::now() - began) * (options_.slowdown - 1));
  return {};
}

Status PlanRunner::compute(int slot, std::span<LiveRequest* const> batch) {
  const auto it = sizes_.lower_bound(static_cast<int>(batch.size()));
  if (it == sizes_.end())
    return internal_error("a batch of " + std::to_string(batch.size()) + " is larger than planned");
  auto& executor = *it->second;
  gather(executor, slot, batch);
  HEDDLE_RETURN_IF_ERROR(executor.run_slot(slot));
  scatter(executor, slot, batch);
  return {};
}

void PlanRunner::gather(const Executor& executor, int slot, std::span<LiveRequest* const> batch) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const RowTensor& tensor = inputs_[i];
    for (size_t r = 0; r < batch.size(); ++r) {
      auto& row = *static_cast<TensorRow*>(batch[r]);
      std::byte* const to = executor.inputs(slot)[i].data + r * tensor.row_bytes;
      if (!tensor.crosses) {
        std::memcpy(to, row.inputs[tensor.places.front()], tensor.row_bytes);
        continue;
      }
      const auto* from = feature_of(row, tensor.id);
      if (from == nullptr)  // an earlier part has failed for this row, and its outcome is settled
        std::memset(to, 0, tensor.row_bytes);
      else if (tensor.half)
        halves_to_floats(from->data(), tensor.row_bytes / sizeof(float), to);
      else
        std::memcpy(to, from->data(), tensor.row_bytes);
    }
  }
}

void PlanRunner::scatter(const Executor& executor, int slot, std::span<LiveRequest* const> batch) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const RowTensor& tensor = outputs_[i];
    for (size_t r = 0; r < batch.size(); ++r) {
      auto& row = *static_cast<TensorRow*>(batch[r]);
      const std::byte* const from = executor.outputs(slot)[i].data + r * tensor.row_bytes;
      for (const size_t place : tensor.places)
        if (auto* to = row.outputs[place]) std::memcpy(to, from, tensor.row_bytes);  // null: not asked for
      if (!tensor.crosses) continue;
      auto* to = feature_of(row, tensor.id);
      if (to == nullptr)
        to = &row.features.emplace_back(static_cast<uint32_t>(tensor.id.index()), std::vector<std::byte>())
                  .second;
      to->resize(tensor.kept_bytes());
      if (tensor.half)
        floats_to_halves(from, tensor.row_bytes / sizeof(float), to->data());
      else
        std::memcpy(to->data(), from, tensor.row_bytes);
    }
  }
}

Status PlanRunner::check_row(const TensorRow& row) const {
  for (const auto& tensor : inputs_) {
    const auto* feature = tensor.crosses ? feature_of(row, tensor.id) : nullptr;
    const bool there = tensor.crosses ? feature != nullptr && feature->size() == tensor.kept_bytes()
                                      : row.inputs[tensor.places.front()] != nullptr;
    if (!there)
      return internal_error("the tensor '" + tensor.name +
                            "' did not come with the row, or not in its size of " +
                            std::to_string(tensor.kept_bytes()) + " bytes");
  }
  return {};
}

Result<double> median_run_us(double seconds, const Deadline& deadline, const std::function<Status()>& run) {
  std::vector<double> times;
  const TimeNs begin = live_now();
  do {
    if (deadline.should_stop()) return cancelled_error("stopped while measuring");
    const TimeNs start = live_now();
    HEDDLE_RETURN_IF_ERROR(run());
    times.push_back(us_from_ns(live_now() - start));
  } while (times.size() < 3 || seconds_from_ns(live_now() - begin) < seconds);
  return std::max(median_us(times), 1e-3);
}

Result<std::vector<double>> PlanRunner::measure(double seconds, const Deadline& deadline) {
  const AffinityGuard bound(cores_);
  std::vector<double> us;
  for (auto& [size, executor] : sizes_) {
    HEDDLE_RETURN_IF_ERROR(executor->run_slot(0));  // the first run allocates
    HEDDLE_ASSIGN_OR_RETURN(const double median, median_run_us(seconds, deadline, [&executor = executor] {
                              return executor->run_slot(0);
                            }));
    us.resize(static_cast<size_t>(size), median);  // a batch between two sizes runs at the larger one
  }
  return us;
}

// The rows of `whole` at this size, which has run, one by one through the smallest size.
Status PlanRunner::compare_alone(Executor& whole, int size) {
  auto& one = *sizes_.begin()->second;
  // The smallest size may be the same executor, so its results are kept.
  const auto copies = [](std::span<const TensorView> views) {
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& v : views) bytes.emplace_back(v.data, v.data + v.bytes);
    return bytes;
  };
  const auto inputs = copies(whole.inputs(0));
  auto outputs = copies(whole.outputs(0));
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto bytes = inputs_[i].row_bytes;
      std::memcpy(one.inputs(0)[i].data, inputs[i].data() + r * bytes, bytes);
    }
    HEDDLE_RETURN_IF_ERROR(one.run_slot(0));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      auto alone = one.outputs(0)[i];
      alone.bytes = static_cast<int64_t>(outputs_[i].row_bytes);
      alone.shape.front() = 1;
      auto row = alone;
      row.data = outputs[i].data() + r * outputs_[i].row_bytes;
      if (!compare_tensors(row, alone, kRowRtol, kRowAtol).equal)
        return Error(Code::kVerificationFailed, "at batch " + std::to_string(size) + " row " +
                                                    std::to_string(r) + " of '" + outputs_[i].name +
                                                    "' differs from what it is alone");
    }
  }
  return {};
}

Status PlanRunner::check_rows() {
  uint64_t seed = 0x5e;
  for (auto& [size, executor] : sizes_) {
    if (size == 1) continue;
    for (const auto& view : executor->inputs(0)) fill_random(view, seed++);
    HEDDLE_RETURN_IF_ERROR(executor->run_slot(0));
    HEDDLE_RETURN_IF_ERROR(compare_alone(*executor, size));
  }
  return {};
}

}  // namespace heddle
