#include "heddle/runtime/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "affinity.h"
#include "engine.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/profiler.h"
#include "memory_plan.h"
#include "program.h"

namespace heddle {
namespace {

// At least one slot per lane; the rest by shares, largest remainder first (ties: lower lane).
std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight) {
  const int lanes = static_cast<int>(shares.size());
  std::vector<int> count(shares.size(), 1);
  for (int left = std::max(in_flight, lanes) - lanes; left > 0; --left) {
    size_t most = 0;
    for (size_t l = 1; l < shares.size(); ++l) {
      if (shares[l] / (count[l] + 1) > shares[most] / (count[most] + 1) + 1e-12) most = l;
    }
    ++count[most];
  }
  std::vector<int> slot_lane;
  for (int round = 0; static_cast<int>(slot_lane.size()) < std::max(in_flight, lanes); ++round) {
    for (int l = 0; l < lanes; ++l) {
      if (count[static_cast<size_t>(l)] > round) slot_lane.push_back(l);
    }
  }
  return slot_lane;
}

class PlanExecutor final : public Executor {
 public:
  PlanExecutor(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
               const ExecutorOptions& options)
      : problem_(problem), plan_(plan), model_(std::move(model)), options_(options) {}

  Status build() {
    HEDDLE_ASSIGN_OR_RETURN(timeline_, evaluate(problem_, plan_, {.critical = false, .resources = false}));
    slot_lane_ = slots_by_share(plan_.lane_shares, options_.in_flight);
    ordered_ = slot_lane_.size() == 1;
    HEDDLE_RETURN_IF_ERROR(open_devices());
    HEDDLE_RETURN_IF_ERROR(compile_segments());
    make_programs();
    HEDDLE_RETURN_IF_ERROR(make_memory());
    HEDDLE_RETURN_IF_ERROR(check_limits());
    return start_engine();
  }

  int slots() const override { return static_cast<int>(slot_lane_.size()); }
  bool moves_data() const override { return all_move_; }
  std::span<const TensorView> inputs(int slot) const override {
    return slot_memory_[static_cast<size_t>(slot)].inputs;
  }
  std::span<const TensorView> outputs(int slot) const override {
    return slot_memory_[static_cast<size_t>(slot)].outputs;
  }

  Result<RequestTiming> run(const Deadline& deadline) override {
    const StreamOptions one{.requests = 1, .fill = {}, .done = {}, .deadline = deadline};
    HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const StreamResult result, engine_->run(one));
    return engine_->last_timing(0);
  }
  Result<StreamResult> run_stream(const StreamOptions& options) override { return engine_->run(options); }

  std::vector<PoolUse> memory() const override {
    std::vector<PoolUse> use = pools_;
    for (size_t p = 0; p < use.size(); ++p) use[p].tensor_bytes += engine_->peak_bytes(static_cast<int>(p));
    return use;
  }

 private:
  struct SlotMemory {
    std::vector<std::shared_ptr<std::byte[]>> buffers;
    std::vector<TensorView> inputs, outputs;
  };

  Status open_devices() {
    devices_.resize(problem_.cluster->num_devices());
    moves_data_.assign(devices_.size(), false);
    for (const Segment& segment : plan_.segments) {
      auto& opened = devices_[segment.device.index()];
      if (opened) continue;
      const Device& device = problem_.cluster->device(segment.device);
      auto result = options_.open ? options_.open(device) : open_device(device);
      if (!result.ok()) return std::move(result).error().with_context("device '" + device.name + "'");
      opened = std::move(result).value();
      HEDDLE_RETURN_IF_ERROR(check_cores(opened->worker_cores(), device.name));
      moves_data_[segment.device.index()] = opened->moves_data();
      any_move_ |= opened->moves_data();
      all_move_ &= opened->moves_data();
    }
    all_move_ &= any_move_;
    return {};
  }

  SegmentSpec spec_of(size_t s) const {
    const Segment& segment = plan_.segments[s];
    SegmentSpec spec{
        .name = segment.name, .model = model_, .finest_ops = {}, .inputs = {}, .outputs = {}, .cost_us = 0};
    if (model_) spec.finest_ops = finest_ops(*problem_.graph, segment.ops);
    const auto describe = [&](std::span<const TensorId> tensors, std::vector<SegmentTensor>& out) {
      for (TensorId t : tensors) {
        const Tensor& tensor = problem_.graph->tensor(t);
        out.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
      }
    };
    describe(ports_[s].inputs, spec.inputs);
    describe(ports_[s].outputs, spec.outputs);
    const auto step = static_cast<size_t>(run_step_[s]);
    spec.cost_us = timeline_.finish_us[step] - timeline_.start_us[step];
    return spec;
  }

  Status compile_segments() {
    const auto owner = ops_to_segments(problem_, plan_);
    run_step_.assign(plan_.segments.size(), -1);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (plan_.steps[i].kind == StepKind::kRun)
        run_step_[plan_.steps[i].segment.index()] = static_cast<int32_t>(i);
    }
    std::vector<int> lane_slots(plan_.lane_shares.size(), 0);
    for (int lane : slot_lane_) ++lane_slots[static_cast<size_t>(lane)];
    const size_t total = plan_.segments.size();
    for (size_t s = 0; s < total; ++s) {
      const Segment& segment = plan_.segments[s];
      ports_.push_back(segment_ports(*problem_.graph, segment, owner[static_cast<size_t>(segment.lane)],
                                     static_cast<int32_t>(s)));
      if (options_.deadline.should_stop()) {
        return Error(Code::kCancelled, "stopped while compiling: " + std::to_string(s) + " of " +
                                           std::to_string(total) + " segments are done");
      }
      auto compiled = devices_[segment.device.index()]->compile(
          spec_of(s), lane_slots[static_cast<size_t>(segment.lane)]);
      if (!compiled.ok()) {
        return std::move(compiled).error().with_context("segment '" + segment.name + "' on device '" +
                                                        problem_.cluster->device(segment.device).name + "'");
      }
      compiled_.push_back(std::move(compiled).value());
      if (options_.progress)
        options_.progress->report(
            {.what = "compiling", .done = static_cast<double>(s + 1), .total = static_cast<double>(total)});
    }
    return {};
  }

  void make_programs() {
    std::vector<const CompiledSegment*> compiled;
    for (const auto& c : compiled_) compiled.push_back(c.get());
    const ProgramInput input{problem_, plan_, timeline_, ports_, compiled, moves_data_, ordered_};
    for (size_t lane = 0; lane < plan_.lane_shares.size(); ++lane)
      programs_.push_back(make_program(input, static_cast<int>(lane)));
  }

  // Buffers for every slot, and every segment bound to them: producer and readers share one memory.
  Status make_memory() {
    pools_.resize(static_cast<size_t>(problem_.cluster->num_memory_pools()));
    slot_memory_.resize(slot_lane_.size());
    if (!any_move_) return {};
    std::vector<MemoryPlan> plans;
    for (const Program& program : programs_) plans.push_back(plan_memory(problem_, plan_, program, ports_));
    const std::vector<int> instances = lane_instances();
    for (size_t slot = 0; slot < slot_lane_.size(); ++slot) {
      const auto lane = static_cast<size_t>(slot_lane_[slot]);
      HEDDLE_RETURN_IF_ERROR(allocate(slot, plans[lane]));
      for (size_t s = 0; s < plan_.segments.size(); ++s) {
        if (plan_.segments[s].lane != slot_lane_[slot]) continue;
        const auto inputs = views(slot, plans[lane], ports_[s].inputs);
        const auto outputs = views(slot, plans[lane], ports_[s].outputs);
        Status bound = compiled_[s]->bind(instances[slot], inputs, outputs);
        if (!bound.ok())
          return std::move(bound).error().with_context("segment '" + plan_.segments[s].name + "'");
      }
      slot_memory_[slot].inputs = views(slot, plans[lane], problem_.graph->inputs());
      slot_memory_[slot].outputs = views(slot, plans[lane], problem_.graph->outputs());
    }
    return {};
  }

  Status allocate(size_t slot, const MemoryPlan& plan) {
    for (size_t b = 0; b < plan.buffer_bytes.size(); ++b) {
      auto memory = allocate_aligned(plan.buffer_bytes[b]);
      if (!memory)
        return Error(Code::kInfeasible,
                     "no host memory for the plan's tensors: " + std::to_string(plan.total_bytes()) +
                         " bytes for each request in flight");
      slot_memory_[slot].buffers.push_back(std::move(memory));
      const DeviceId device = plan.buffer_device[b];
      if (device.valid())
        pools_[static_cast<size_t>(problem_.cluster->memory_pool(device))].tensor_bytes +=
            plan.buffer_bytes[b];
    }
    return {};
  }

  std::vector<TensorView> views(size_t slot, const MemoryPlan& plan,
                                std::span<const TensorId> tensors) const {
    std::vector<TensorView> result;
    for (TensorId t : tensors) {
      const Tensor& tensor = problem_.graph->tensor(t);
      const auto buffer = static_cast<size_t>(plan.buffer[t.index()]);
      result.push_back({tensor.dtype, tensor.shape, slot_memory_[slot].buffers[buffer].get(), tensor.bytes});
    }
    return result;
  }

  // Parameters are resident: each once per pool.
  Status check_limits() {
    std::set<std::pair<int, int32_t>> counted;
    for (const Segment& segment : plan_.segments) {
      const int pool = problem_.cluster->memory_pool(segment.device);
      PoolUse& use = pools_[static_cast<size_t>(pool)];
      for (OpId op : segment.ops) {
        for (ParamId p : problem_.graph->op(op).params) {
          if (counted.emplace(pool, p.value).second) use.param_bytes += problem_.graph->param(p).bytes;
        }
      }
      const int64_t limit = problem_.cluster->memory_pool_bytes(pool);
      if (limit > 0 && use.param_bytes + use.tensor_bytes > limit) {
        return Error(Code::kInfeasible,
                     "device '" + problem_.cluster->device(segment.device).name + "' has " +
                         std::to_string(limit) + " bytes of memory, but parameters (" +
                         std::to_string(use.param_bytes) + ") and tensors (" +
                         std::to_string(use.tensor_bytes) +
                         " for the requests in flight) need more; reduce --in-flight or use another plan");
      }
    }
    return {};
  }

  Status start_engine() {
    EngineSetup setup;
    setup.plan = &plan_;
    setup.cluster = problem_.cluster.get();
    setup.programs = std::move(programs_);
    setup.slot_lane = slot_lane_;
    setup.ordered = ordered_;
    setup.spin_us = options_.spin_us;
    size_t most = 1;
    for (const Program& p : setup.programs) most = std::max(most, p.tasks.size());
    if (most * slot_lane_.size() > size_t{1} << 30)
      return Error(Code::kUnsupported, "too many steps times requests in flight; reduce --in-flight");
    for (const auto& c : compiled_) setup.compiled.push_back(c.get());
    for (const auto& device : devices_)
      setup.worker_cores.push_back(device ? device->worker_cores() : std::vector<int>{});
    for (size_t p = 0; p < pools_.size(); ++p) {
      const int64_t limit = problem_.cluster->memory_pool_bytes(static_cast<int>(p));
      // With a limit that parameters fill, one byte is left: any tensor is one too many.
      setup.pool_limit.push_back(limit > 0 ? std::max<int64_t>(limit - pools_[p].param_bytes, 1) : 0);
    }
    setup.slot_instance = lane_instances();
    engine_ = std::make_unique<Engine>(std::move(setup));
    return {};
  }

  // A segment has one instance per slot of its lane.
  std::vector<int> lane_instances() const {
    std::vector<int> next(plan_.lane_shares.size(), 0), instances;
    for (int lane : slot_lane_) instances.push_back(next[static_cast<size_t>(lane)]++);
    return instances;
  }

  const Problem problem_;
  const Plan plan_;
  const std::shared_ptr<const Model> model_;
  const ExecutorOptions options_;
  Timeline timeline_;
  bool ordered_ = true, any_move_ = false, all_move_ = true;
  std::vector<int> slot_lane_;
  std::vector<std::unique_ptr<RuntimeDevice>> devices_;
  std::vector<bool> moves_data_;
  std::vector<SegmentPorts> ports_;
  std::vector<int32_t> run_step_;
  std::vector<Program> programs_;
  std::vector<PoolUse> pools_;
  // Destroyed in reverse: threads first, then segments, then the memory they are bound to.
  std::vector<SlotMemory> slot_memory_;
  std::vector<std::unique_ptr<CompiledSegment>> compiled_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(const Problem& problem, const Plan& plan,
                                                   std::shared_ptr<const Model> model,
                                                   const ExecutorOptions& options) {
  if (options.in_flight < 1)
    return Error(Code::kInvalidInput,
                 "requests in flight must be at least 1, not " + std::to_string(options.in_flight));
  auto executor = std::make_unique<PlanExecutor>(problem, plan, std::move(model), options);
  HEDDLE_RETURN_IF_ERROR(executor->build());
  return std::unique_ptr<Executor>(std::move(executor));
}

Result<std::vector<TensorValue>> Executor::run(std::span<const TensorValue> values,
                                               const Deadline& deadline) {
  const auto targets = inputs(0);
  if (moves_data() && values.size() != targets.size()) {
    return Error(Code::kInvalidInput, "the model has " + std::to_string(targets.size()) + " inputs, " +
                                          std::to_string(values.size()) + " were given");
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (values[i].dtype != targets[i].dtype || values[i].shape != targets[i].shape) {
      return Error(Code::kInvalidInput, "input " + std::to_string(i) + " must be " +
                                            dtype_name(targets[i].dtype) + " " +
                                            shape_text(targets[i].shape) + ", not " +
                                            dtype_name(values[i].dtype) + " " + shape_text(values[i].shape));
    }
    std::memcpy(targets[i].data, values[i].data.get(), static_cast<size_t>(targets[i].bytes));
  }
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const RequestTiming timing, run(deadline));
  std::vector<TensorValue> results;
  for (const TensorView& view : outputs(0)) {
    HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(view.dtype, view.shape));
    std::memcpy(value.data.get(), view.data, static_cast<size_t>(view.bytes));
    results.push_back(std::move(value));
  }
  return results;
}

}  // namespace heddle
