#include "heddle/runtime/executor.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "accelerators.h"
#include "border_types.h"
#include "device_issuer.h"
#include "executor_ranks.h"
#include "heddle/base/units.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/profiler.h"
#include "heddle/runtime/rank_group.h"
#include "memory_plan.h"
#include "plan_buffers.h"
#include "program.h"
#include "rank_program.h"
#include "segment_loader.h"
#include "shared_segment.h"
#include "task_runner.h"

namespace heddle {
namespace {

class PlanExecutor final : public Executor {
 public:
  PlanExecutor(const Problem& problem, const Plan& plan, std::shared_ptr<const Model> model,
               const ExecutorOptions& options)
      : problem_(problem), plan_(plan), model_(std::move(model)), options_(options) {}

  Status build() {
    HEDDLE_ASSIGN_OR_RETURN(timeline_,
                            evaluate(problem_, plan_, {.critical = false, .resources = !options_.cold}));
    slot_lane_ = slots_by_share(plan_.lane_shares, options_.in_flight);
    ordered_ = slot_lane_.size() == 1;
    if (options_.cold && !ordered_) {
      return unsupported(
          "a cold start serves one request at a time: give a plan of one lane and one request in flight");
    }
    if (options_.ranks && options_.cold)
      return unsupported("over several ranks a plan runs with its parameters resident, not cold");
    seats_ = seat_segments(problem_, plan_);
    if (!options_.cold) HEDDLE_RETURN_IF_ERROR(agree(check_fit(problem_, plan_, timeline_)));
    HEDDLE_RETURN_IF_ERROR(agree(open_devices()));
    HEDDLE_RETURN_IF_ERROR(note_data_movers());
    HEDDLE_RETURN_IF_ERROR(agree(find_accelerators()));
    HEDDLE_RETURN_IF_ERROR(agree(check_accelerators()));
    if (options_.ranks) HEDDLE_RETURN_IF_ERROR(share_border_types(*options_.ranks->group, border_types_));
    HEDDLE_ASSIGN_OR_RETURN(graphs_, lane_graphs(problem_, model_.get(), plan_, border_types_));
    HEDDLE_RETURN_IF_ERROR(agree(compile_segments()));
    if (!accelerators_.empty())
      layout_ = lay_out_parameters(plan_, timeline_, parameter_needs(plan_, accelerators_, compiled_),
                                   accelerators_.memories());
    HEDDLE_RETURN_IF_ERROR(make_programs());
    Status ready = make_memory();
    if (ready.ok()) ready = check_limits();
    if (ready.ok()) ready = start_tasks();
    return agree(ready);
  }

  ~PlanExecutor() override { close(); }

  int slots() const override { return static_cast<int>(slot_lane_.size()); }
  int lane(int slot) const override { return slot_lane_[static_cast<size_t>(slot)]; }
  bool moves_data() const override { return all_move_; }
  std::span<const TensorView> inputs(int slot) const override {
    return slot_ports_[static_cast<size_t>(slot)].inputs;
  }
  std::span<const TensorView> outputs(int slot) const override {
    return slot_ports_[static_cast<size_t>(slot)].outputs;
  }

  Result<RequestTiming> run(const Deadline& deadline) override {
    const StreamOptions one{.requests = 1, .fill = {}, .done = {}, .deadline = deadline};
    HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const StreamResult result, run_stream(one));
    return tasks_->last_timing(0);
  }
  Result<StreamResult> run_stream(const StreamOptions& options) override {
    auto result = tasks_->run(options);
    // After an error no segment keeps its memory.
    if (!result.ok() && loader_) loader_->release_all();
    return result;
  }
  // With one slot the thread that brings a request plays a worker, as in run(), and no other is needed.
  Status open() override {
    if (options_.cold) return unsupported("cold starts cannot be served");
    if (intake_.joinable() || (slots() == 1 && !options_.ranks)) return {};
    tasks_->begin_intake();
    if (!options_.ranks) intake_ = std::thread([this] { tasks_->serve_intake(); });
    return {};
  }
  Status run_slot(int slot) override {
    if (intake_.joinable() || options_.ranks) return tasks_->run_request(slot);
    const auto ran = run(Deadline());
    return ran.ok() ? Status() : Status(ran.error());
  }
  Status serve_ranks(const CancelToken& stop) override { return tasks_->serve_rank_intake(stop); }
  void close() override {
    if (options_.ranks && tasks_) tasks_->end_intake();
    if (!intake_.joinable()) return;
    tasks_->end_intake();
    intake_.join();
  }

  std::vector<SegmentLoading> loadings() const override {
    return loader_ ? loader_->loadings() : std::vector<SegmentLoading>{};
  }
  Status store_segments() override { return loader_ ? loader_->store() : Status(); }
  int64_t peak_resident_bytes() const override { return loader_ ? loader_->peak_bytes() : 0; }

  std::vector<PoolUse> memory() const override {
    std::vector<PoolUse> use = pools_;
    for (size_t p = 0; p < use.size(); ++p) use[p].tensor_bytes += tasks_->peak_bytes(static_cast<int>(p));
    return use;
  }

 private:
  bool here(const Segment& segment) const {
    return !options_.ranks ||
           options_.ranks->rank_of_device[segment.device.index()] == options_.ranks->group->rank();
  }

  Status share(std::vector<bool>& flags) {
    return options_.ranks ? share_flags(*options_.ranks->group, flags) : Status();
  }
  Status agree(const Status& own) { return options_.ranks ? options_.ranks->group->agree(own) : own; }

  Status open_devices() {
    devices_.resize(seats_.seats.size());
    moves_data_.assign(problem_.cluster->num_devices(), false);
    border_types_.assign(problem_.cluster->num_devices(), DType::kF32);
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Segment& segment = plan_.segments[s];
      const auto seat = static_cast<size_t>(seats_.of_segment[s]);
      auto& opened = devices_[seat];
      if (opened || !here(segment)) continue;
      Device device = problem_.cluster->device(segment.device);
      if (seats_.seats[seat].of > 1) device.cores = seats_.seats[seat].cores;
      auto result = options_.open ? options_.open(device) : open_device(device);
      if (!result.ok()) return std::move(result).error().with_context("device '" + device.name + "'");
      opened = std::move(result).value();
      HEDDLE_RETURN_IF_ERROR(check_cores(opened->worker_cores(), device.name));
      moves_data_[segment.device.index()] = opened->moves_data();
      border_types_[segment.device.index()] = opened->border_type();
    }
    return {};
  }

  Status note_data_movers() {
    HEDDLE_RETURN_IF_ERROR(share(moves_data_));
    for (const Segment& segment : plan_.segments) {
      const bool moves = moves_data_[segment.device.index()];
      any_move_ |= moves;
      all_move_ &= moves;
    }
    all_move_ &= any_move_;
    return {};
  }

  Status find_accelerators() {
    auto found = Accelerators::find(*problem_.cluster, seats_, devices_);
    HEDDLE_RETURN_IF_ERROR(agree(found.ok() ? Status() : Status(found.error())));
    accelerators_ = std::move(found).value();
    if (!options_.ranks) return {};
    HEDDLE_ASSIGN_OR_RETURN(direct_,
                            share_accelerators(*options_.ranks->group, *problem_.cluster, accelerators_));
    return {};
  }

  // Rejects what cannot be combined with accelerators.
  Status check_accelerators() {
    if (accelerators_.empty()) return {};
    const std::string name = "device '" + accelerators_.of_memory(1).name + "'";
    const auto refuse = [&](const std::string& why) { return unsupported(name + why); };
    if (!all_move_)
      return refuse(" computes, which a plan cannot mix with emulated devices: give those a backend");
    for (const Segment& segment : plan_.segments) {
      if (!ordered_ && segment.drops_params && accelerators_.memory(segment.device) != 0)
        return refuse(" drops parameters, so it serves one request at a time: reduce --in-flight to 1");
    }
    for (const Step& step : plan_.steps) {
      if (options_.cold && step.kind == StepKind::kLoad && accelerators_.memory(step.to) != 0)
        return refuse(
            " gets its parameters by the plan's own loads (objective cold-latency): run it without --cold, "
            "or plan for another objective");
    }
    return {};
  }

  SegmentSpec spec_of(size_t s) const {
    const Segment& segment = plan_.segments[s];
    SegmentSpec spec;
    spec.name = segment.name;
    spec.model = model_;
    spec.host_access = segment.host_access;
    if (options_.cold) {
      spec.read_model = options_.cold->read_model;
      spec.cache = options_.cold->cache;
      spec.model_key = options_.cold->model_key;
    }
    if (model_ || spec.read_model) spec.finest_ops = finest_ops(*problem_.graph, segment.ops);
    spec.inputs = segment_tensors(graph_of(segment.lane), ports_[s].inputs);
    spec.outputs = segment_tensors(graph_of(segment.lane), ports_[s].outputs);
    const auto step = static_cast<size_t>(run_step_[s]);
    spec.cost_us = timeline_.finish_us[step] - timeline_.start_us[step];
    return spec;
  }

  const Graph& graph_of(int lane) const { return *graphs_[static_cast<size_t>(lane)]; }
  RuntimeDevice& device_of(size_t s) const { return *devices_[static_cast<size_t>(seats_.of_segment[s])]; }

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
    std::vector<bool> may_share(total);
    for (size_t s = 0; s < total; ++s)
      may_share[s] = here(plan_.segments[s]) && !options_.cold && device_of(s).shares_segments();
    SegmentGroups groups(problem_, plan_, seats_, graphs_, may_share, lane_slots);
    for (size_t s = 0; s < total; ++s) {
      const Segment& segment = plan_.segments[s];
      ports_.push_back(segment_ports(*problem_.graph, segment, owner[static_cast<size_t>(segment.lane)],
                                     static_cast<int32_t>(s)));
      if (!here(segment)) {
        compiled_.push_back(nullptr);
        continue;
      }
      if (options_.cold && moves_data_[segment.device.index()]) {
        compiled_.push_back(nullptr);  // compiled by the loader
        continue;
      }
      if (options_.deadline.should_stop()) {
        return cancelled_error("stopped while compiling: " + std::to_string(s) + " of " +
                               std::to_string(total) + " segments are done");
      }
      auto compiled = groups.compiled(s, device_of(s), [&] { return spec_of(s); });
      if (!compiled.ok()) return std::move(compiled).error().with_context(place_of(segment));
      compiled_.push_back(std::move(compiled).value());
      if (options_.progress)
        options_.progress->report(
            {.what = "compiling", .done = static_cast<double>(s + 1), .total = static_cast<double>(total)});
    }
    return options_.cold ? make_loader() : Status();
  }

  std::string place_of(const Segment& segment) const {
    return "segment '" + segment.name + "' on device '" + problem_.cluster->device(segment.device).name + "'";
  }

  const Accelerator* accelerator_of(const Segment& segment) const {
    const int32_t memory = accelerators_.memory(segment.device);
    return memory == 0 ? nullptr : &accelerators_.of_memory(memory);
  }

  Status make_loader() {
    std::vector<LoadItem> items(plan_.segments.size());
    std::vector<int32_t> order;
    std::map<int32_t, int32_t> last_copy;  // [memory] the last item copied to it
    for (const Step& step : plan_.steps) {
      const size_t s = step.segment.index();
      if (step.kind != StepKind::kRun || compiled_[s]) continue;
      const Segment& segment = plan_.segments[s];
      items[s] = {.place = place_of(segment),
                  .device = devices_[static_cast<size_t>(seats_.of_segment[s])].get(),
                  .spec = spec_of(s),
                  .bytes = problem_.graph->param_bytes(segment.ops),
                  .accelerator = accelerator_of(segment)};
      order.push_back(static_cast<int32_t>(s));
      if (items[s].accelerator == nullptr) continue;
      for (const auto& [memory, earlier] : last_copy) {
        if (share_load_route(*problem_.cluster, accelerators_.of_memory(memory).device, segment.device))
          items[s].copied_before.push_back(earlier);
      }
      last_copy[accelerators_.memory(segment.device)] = static_cast<int32_t>(s);
    }
    HEDDLE_ASSIGN_OR_RETURN(loader_, SegmentLoader::create(std::move(items), order, *options_.cold));
    for (const int32_t s : order) compiled_[static_cast<size_t>(s)] = loader_->stand_in(s);
    return {};
  }

  Status make_programs() {
    std::vector<bool> blocks(compiled_.size(), false);
    for (size_t s = 0; s < compiled_.size(); ++s) blocks[s] = compiled_[s] && !compiled_[s]->timed_us();
    HEDDLE_RETURN_IF_ERROR(share(blocks));
    const ElsewhereSegment blocking(false), timed(true);
    std::vector<const CompiledSegment*> compiled;
    for (size_t s = 0; s < compiled_.size(); ++s)
      compiled.push_back(compiled_[s] ? compiled_[s].get() : blocks[s] ? &blocking : &timed);
    ProgramInput input{problem_,      plan_,  timeline_, ports_,  compiled,
                       moves_data_,   seats_, ordered_,  nullptr, accelerators_.memory_of(),
                       layout_.reuses};
    RankView view;
    if (options_.ranks) {
      view = {options_.ranks->group->rank(), options_.ranks->rank_of_device, options_.ranks->real_transfers,
              direct_};
      input.ranks = &view;
    }
    for (size_t lane = 0; lane < plan_.lane_shares.size(); ++lane)
      programs_.push_back(make_program(input, static_cast<int>(lane)));
    return {};
  }

  // Allocates buffers for every slot and binds every segment to them. Producer and readers share memory
  // unless a copy connects them.
  Status make_memory() {
    pools_.resize(static_cast<size_t>(problem_.cluster->num_memory_pools()));
    slot_ports_.resize(slot_lane_.size());
    if (!any_move_) return {};
    for (const Program& program : programs_)
      memory_plans_.push_back(
          plan_memory(graph_of(program.lane), plan_, program, ports_, accelerators_.memory_of()));
    const std::vector<int> instances = instances_by_lane(slot_lane_);
    for (size_t slot = 0; slot < slot_lane_.size(); ++slot) {
      const MemoryPlan& plan = plan_of(slot);
      HEDDLE_RETURN_IF_ERROR(buffers_.add_slot(plan, accelerators_));
      for (const PlannedBuffer& buffer : plan.buffers)
        if (buffer.device.valid()) pool_of(buffer.device).tensor_bytes += buffer.bytes;
      for (size_t s = 0; s < plan_.segments.size(); ++s) {
        if (plan_.segments[s].lane != slot_lane_[slot] || !compiled_[s]) continue;
        const int32_t memory = accelerators_.memory(plan_.segments[s].device);
        const auto inputs = views(slot, ports_[s].inputs, memory);
        const auto outputs = views(slot, ports_[s].outputs, memory);
        Status bound = compiled_[s]->bind(instances[slot], inputs, outputs);
        if (!bound.ok())
          return std::move(bound).error().with_context("segment '" + plan_.segments[s].name + "'");
      }
      slot_ports_[slot].inputs = views(slot, problem_.graph->inputs(), 0);
      slot_ports_[slot].outputs = views(slot, problem_.graph->outputs(), 0);
    }
    if (accelerators_.empty()) return {};
    HEDDLE_ASSIGN_OR_RETURN(parameters_,
                            place_parameters(plan_, accelerators_, compiled_, layout_, buffers_));
    return {};
  }

  PoolUse& pool_of(DeviceId device) {
    return pools_[static_cast<size_t>(problem_.cluster->memory_pool(device))];
  }

  const MemoryPlan& plan_of(size_t slot) const {
    return memory_plans_[static_cast<size_t>(slot_lane_[slot])];
  }

  std::vector<TensorView> views(size_t slot, std::span<const TensorId> tensors, int32_t memory) const {
    std::vector<TensorView> result;
    for (TensorId t : tensors) {
      const Tensor& tensor = graph_of(slot_lane_[slot]).tensor(t);
      result.push_back(
          {tensor.dtype, tensor.shape, buffers_.address(slot, plan_of(slot), t, memory), tensor.bytes});
    }
    return result;
  }

  Status make_issuer() {
    if (accelerators_.empty()) return {};
    IssuerSetup setup;
    setup.problem = &problem_;
    setup.plan = &plan_;
    setup.accelerators = &accelerators_;
    setup.programs = &programs_;
    setup.graphs = graphs_;
    setup.slot_lane = slot_lane_;
    setup.parameters = parameters_;
    for (const int32_t seat : seats_.of_segment) {
      const auto& device = devices_[static_cast<size_t>(seat)];
      setup.execution.push_back(device ? device->execution_stream() : nullptr);
    }
    setup.address = [this](size_t slot, TensorId t, int32_t memory) {
      return buffers_.address(slot, plan_of(slot), t, memory);
    };
    if (loader_) setup.loaded = [this](int32_t segment) { return loader_->loaded(segment); };
    HEDDLE_ASSIGN_OR_RETURN(issuer_, DeviceIssuer::create(setup));
    return {};
  }

  // Checks pool limits: each parameter counts once per pool; a cold start counts at most its budget.
  Status check_limits() {
    std::set<std::pair<int, int32_t>> counted;
    for (const Segment& segment : plan_.segments) {
      if (!here(segment)) continue;
      const int pool = problem_.cluster->memory_pool(segment.device);
      for (OpId op : segment.ops) {
        for (ParamId p : problem_.graph->op(op).params) {
          if (counted.emplace(pool, p.value).second)
            pool_of(segment.device).param_bytes += problem_.graph->param(p).bytes;
        }
      }
    }
    for (int32_t m = 1; m < accelerators_.memories() && !options_.cold; ++m) {
      pool_of(accelerators_.of_memory(m).device).param_bytes = layout_.bytes[static_cast<size_t>(m)];
    }
    if (options_.cold && options_.cold->budget_bytes > 0) {
      for (PoolUse& use : pools_) use.param_bytes = std::min(use.param_bytes, options_.cold->budget_bytes);
    }
    for (const Segment& segment : plan_.segments)
      if (here(segment)) HEDDLE_RETURN_IF_ERROR(check_use(*problem_.cluster, segment.device, pools_));
    return {};
  }

  Status start_tasks() {
    TaskRunnerSetup setup;
    if (options_.ranks) {
      HEDDLE_ASSIGN_OR_RETURN(scratch_,
                              set_messages(options_.ranks->group->transport(),
                                           {graphs_, programs_, slot_lane_, memory_plans_, buffers_}, setup));
      set_request_messages(
          *options_.ranks,
          {plan_, ports_, problem_.graph->inputs(), problem_.graph->outputs(), slot_lane_, slot_ports_},
          setup);
    }
    HEDDLE_RETURN_IF_ERROR(make_issuer());
    setup.issuer = issuer_.get();
    setup.plan = &plan_;
    setup.cluster = problem_.cluster.get();
    setup.programs = std::move(programs_);
    setup.slot_lane = slot_lane_;
    setup.ordered = ordered_;
    setup.spin_us = options_.spin_us;
    size_t most = 1;
    for (const Program& p : setup.programs) most = std::max(most, p.tasks.size());
    if (most * slot_lane_.size() > size_t{1} << 30)
      return unsupported("too many steps times requests in flight; reduce --in-flight");
    for (const auto& c : compiled_) setup.compiled.push_back(c.get());
    for (const auto& device : devices_)
      setup.worker_cores.push_back(device ? device->worker_cores() : std::vector<int>{});
    // One more worker per lane, to wait for the end of its requests.
    if (!accelerators_.empty()) setup.worker_cores.resize(devices_.size() + plan_.lane_shares.size());
    for (size_t p = 0; p < pools_.size(); ++p) {
      const int64_t limit = problem_.cluster->memory_pool_bytes(static_cast<int>(p));
      // If parameters fill the pool, a limit of one byte makes every tensor fail (0 would mean no limit).
      setup.pool_limit.push_back(limit > 0 ? std::max<int64_t>(limit - pools_[p].param_bytes, 1) : 0);
    }
    setup.slot_instance = instances_by_lane(slot_lane_);
    if (loader_) {
      setup.close_gates = [this](std::vector<bool>& closed) { loader_->close_gates(closed); };
      setup.gates_closed = [this](int64_t begin_ns) { loader_->begin(begin_ns); };
      setup.spin_us = 0;  // the load workers need the cores
    }
    tasks_ = std::make_unique<TaskRunner>(std::move(setup));
    if (loader_) loader_->start(*tasks_);
    return {};
  }

  const Problem problem_;
  const Plan plan_;
  const std::shared_ptr<const Model> model_;
  const ExecutorOptions options_;
  Timeline timeline_;
  Seats seats_;
  bool ordered_ = true, any_move_ = false, all_move_ = true;
  std::vector<int> slot_lane_;
  std::vector<std::unique_ptr<RuntimeDevice>> devices_;  // per seat
  Accelerators accelerators_;
  std::vector<bool> direct_;  // several ranks: [device] its memory can hold messages
  std::vector<bool> moves_data_;
  std::vector<DType> border_types_;                   // per device
  std::vector<std::shared_ptr<const Graph>> graphs_;  // per lane: the graph with the tensors' types in memory
  std::vector<SegmentPorts> ports_;
  std::vector<int32_t> run_step_;
  std::vector<Program> programs_;
  std::vector<PoolUse> pools_;
  // Destroyed in reverse order: threads, then segments, then the memory they are bound to.
  std::vector<MemoryPlan> memory_plans_;  // per lane
  PlanBuffers buffers_;
  std::vector<SlotPorts> slot_ports_;
  ParameterLayout layout_;
  std::vector<ParameterBlock> parameters_;  // [segment], on accelerators
  std::shared_ptr<std::byte[]> scratch_;    // several ranks
  std::unique_ptr<SegmentLoader> loader_;   // cold starts
  std::vector<std::shared_ptr<CompiledSegment>> compiled_;
  std::unique_ptr<DeviceIssuer> issuer_;
  std::unique_ptr<TaskRunner> tasks_;
  std::thread intake_;  // between open() and close(), with several slots
};

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(const Problem& problem, const Plan& plan,
                                                   std::shared_ptr<const Model> model,
                                                   const ExecutorOptions& options) {
  if (options.in_flight < 1)
    return invalid_input("requests in flight must be at least 1, not " + std::to_string(options.in_flight));
  auto executor = std::make_unique<PlanExecutor>(problem, plan, std::move(model), options);
  HEDDLE_RETURN_IF_ERROR(executor->build());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace heddle
