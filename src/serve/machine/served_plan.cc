#include "served_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "heddle/base/log.h"
#include "heddle/base/quantiles.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/precision_error.h"
#include "heddle/runtime/run.h"
#include "heddle/session/loaded_model.h"
#include "heddle/session/rank_plan.h"
#include "plane/fault.h"
#include "split_check.h"

namespace heddle {
namespace {

constexpr size_t kMostNamedDevices = 4;

// Real devices of one plan must be on this host. The plan does not say which host that is, so it may be any.
Status check_one_host(const PlanFile& file) {
  const auto& cluster = *file.problem.cluster;
  std::set<HostId> hosts;
  for (const auto& segment : file.plan.segments) {
    const auto& device = cluster.device(segment.device);
    const auto* backend = find_backend(device.backend);
    if (backend != nullptr && backend->computes()) hosts.insert(device.host);
  }
  if (hosts.size() <= 1) return {};
  const auto count = std::to_string(hosts.size());
  return unsupported("the plan computes on " + count + " hosts; start a rank on each: mpirun -n " + count +
                     " heddle serve, or plan for the devices of one host (--devices)");
}

std::vector<std::set<DeviceId>> devices_of_lanes(const Plan& plan) {
  std::vector<std::set<DeviceId>> devices(plan.lane_shares.size());
  for (const auto& s : plan.segments) devices[static_cast<size_t>(s.lane)].insert(s.device);
  return devices;
}

// A lane of several devices is a pipeline: one request more than it has devices keeps all of them busy.
int requests_at_once(const PlanFile& file) {
  if (file.problem.objective != Objective::kThroughput) return 1;
  int all = 0;
  for (const auto& lane : devices_of_lanes(file.plan))
    all += lane.size() > 1 ? static_cast<int>(lane.size()) + 1 : 1;
  return all;
}

std::string device_names(const Cluster& cluster, const std::set<DeviceId>& devices) {
  if (devices.size() > kMostNamedDevices) return std::to_string(devices.size()) + " devices";
  std::string text;
  for (const auto d : devices) text += (text.empty() ? "" : "+") + cluster.device(d).name;
  return text;
}

// Rows for one batch, with room for the outputs that clients are given.
struct ProbeBatch {
  std::vector<std::unique_ptr<ProbeRow>> rows;
  std::vector<std::vector<TensorValue>> outputs;  // [row]
  std::vector<LiveRequest*> batch;
};

Result<ProbeBatch> probe_batch(const ServedModel& served, const std::vector<TensorValue>& inputs) {
  ProbeBatch probe;
  for (int r = 0; r < served.max_rows; ++r) {
    auto row = std::make_unique<ProbeRow>();
    for (size_t i = 0; i < served.inputs.size(); ++i)
      row->inputs.push_back(inputs[i].data.get() + r * served.inputs[i].row_bytes);
    HEDDLE_ASSIGN_OR_RETURN(auto outputs, tensors_of(served.outputs));
    for (const auto& value : outputs) row->outputs.push_back(value.data.get());
    probe.batch.push_back(row.get());
    probe.rows.push_back(std::move(row));
    probe.outputs.push_back(std::move(outputs));
  }
  return probe;
}

// Of each slot's outputs, one after the other, against the unsplit model's in float32, on one random batch.
struct SlotErrors {
  TensorGap worst;
  OutputError plan, unsplit;  // of plans in narrower types
};

Result<SlotErrors> difference_from_unsplit(PlanRunner& runner, const LocalModel& local, Precision type) {
  const auto& model = *local.sizes.begin()->second;
  const auto& graph = *model.graph();
  HEDDLE_ASSIGN_OR_RETURN(auto inputs, make_inputs(graph));
  HEDDLE_ASSIGN_OR_RETURN(const auto probe, probe_batch(local.served, inputs));
  HEDDLE_ASSIGN_OR_RETURN(const Samples samples, with_references(model, {std::move(inputs)}));
  const auto& expected = samples.expected.front();
  SlotErrors errors;
  for (int slot = 0; slot < runner.slots(); ++slot) {
    HEDDLE_RETURN_IF_ERROR(runner.run(slot, probe.batch));
    for (size_t r = 0; r < probe.outputs.size(); ++r) {
      std::vector<TensorValue> whole_rows;
      for (const TensorInfo& info : local.served.outputs) {
        size_t i = 0;
        while (graph.tensor(graph.outputs()[i]).name != info.name) ++i;
        TensorValue& row = whole_rows.emplace_back();
        row.dtype = info.dtype;
        row.shape = info.row;
        row.bytes = static_cast<int64_t>(info.row_bytes);
        row.data = {expected[i].data, expected[i].data.get() + r * info.row_bytes};
        keep_worst(errors.worst,
                   relative_difference(probe.outputs[r][whole_rows.size() - 1].view(), row.view()));
      }
      if (type != Precision::kF32) add_samples(errors.plan, output_error(probe.outputs[r], whole_rows));
    }
  }
  if (type == Precision::kF32) return errors;
  HEDDLE_ASSIGN_OR_RETURN(errors.unsplit, unsplit_error(model, type, samples, {}));
  return errors;
}

struct SlotTimes {
  std::vector<double> us;  // [slot] of one request with all slots in use
  double rate_per_s = 0;   // of all slots together
};

SlotTimes planned_times(const PlanFile& file, const Timeline& timeline, const PlanRunner& runner) {
  SlotTimes times;
  times.rate_per_s = kUsPerSecond / std::max(timeline.period_us, 1e-3);
  if (runner.slots() == 1) times.rate_per_s = kUsPerSecond / std::max(timeline.makespan_us, 1e-3);
  std::vector<int> slots(file.plan.lane_shares.size(), 0);
  for (int s = 0; s < runner.slots(); ++s) ++slots[static_cast<size_t>(runner.lane(s))];
  for (int s = 0; s < runner.slots(); ++s) {
    const auto lane = static_cast<size_t>(runner.lane(s));
    const double rate = times.rate_per_s * file.plan.lane_shares[lane];
    times.us.push_back(std::max(timeline.makespan_us, slots[lane] / rate * kUsPerSecond));
  }
  return times;
}

// One thread for each slot, as the data plane has.
Result<SlotTimes> measure_slots(PlanRunner& runner, const LocalModel& local,
                                const ServedPlanOptions& options) {
  const auto n = static_cast<size_t>(runner.slots());
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*local.sizes.begin()->second->graph()));
  std::vector<std::vector<double>> taken(n);
  std::vector<Status> ended(n);
  std::vector<ProbeBatch> probes(n);
  for (auto& probe : probes) {
    HEDDLE_ASSIGN_OR_RETURN(probe, probe_batch(local.served, inputs));
  }
  const TimeNs begin = live_now(), until = begin + ns_from_us(options.measure_s * 1e6);
  {
    std::vector<std::jthread> threads;
    for (size_t s = 0; s < n; ++s)
      threads.emplace_back([&, s] {
        while (ended[s].ok() && !options.deadline.should_stop() &&
               (taken[s].size() < 3 || live_now() < until)) {
          const TimeNs start = live_now();
          ended[s] = runner.run(static_cast<int>(s), probes[s].batch);
          taken[s].push_back(us_from_ns(live_now() - start));
        }
      });
  }
  if (options.deadline.should_stop()) return cancelled_error("stopped while measuring");
  SlotTimes times;
  size_t all = 0;
  for (size_t s = 0; s < n; ++s) {
    HEDDLE_RETURN_IF_ERROR(ended[s]);
    times.us.push_back(std::max(median_us(taken[s]), 1e-3));
    all += taken[s].size();
  }
  times.rate_per_s = static_cast<double>(all) / seconds_from_ns(live_now() - begin);
  return times;
}

Deployment deployment_of(const PlanFile& file, const ServedModel& served, const PlanRunner& runner,
                         const SlotTimes& times, std::vector<int>& slot_of) {
  Deployment d;
  d.models.push_back({served.name, ns_from_us(served.slo_us), times.rate_per_s * served.max_rows, {}});
  const auto devices = devices_of_lanes(file.plan);
  double rate = 0;
  for (const double us : times.us) rate += 1 / us;
  for (uint32_t lane = 0; lane < devices.size(); ++lane) {
    DevicePool pool;
    pool.first_device = static_cast<uint32_t>(d.devices.size());
    const auto name = device_names(*file.problem.cluster, devices[lane]);
    pool.role = {served.name, 0, 1, name, 1};
    double us = 0, share = 0;
    for (int s = 0; s < runner.slots(); ++s) {
      if (runner.lane(s) != static_cast<int>(lane)) continue;
      const auto v = static_cast<uint32_t>(d.devices.size());
      d.devices.push_back({.device_class = lane, .device = v, .server = v});
      slot_of.push_back(s);
      us = std::max(us, times.us[static_cast<size_t>(s)]);
      share += 1 / times.us[static_cast<size_t>(s)] / rate;
      ++pool.num_devices;
    }
    pool.run_ns.assign(static_cast<size_t>(served.max_rows), std::max<TimeNs>(1, ns_from_us(us)));
    d.classes.push_back({name, pool.num_devices, pool.first_device, pool.num_devices});
    DeployedPipeline pipeline;
    pipeline.batch = static_cast<uint32_t>(served.max_rows);
    pipeline.rate_per_s = d.models.front().rate_per_s * share;
    pipeline.partitions.push_back(std::move(pool));
    d.models.front().pipelines.push_back(lane);
    d.pipelines.push_back(std::move(pipeline));
  }
  d.num_servers = static_cast<uint32_t>(d.devices.size());
  return d;
}

// The thread that brings a request to a plan of one device is the device's; with several devices each has a
// thread of the executor's.
std::vector<int> only_cores(const PlanFile& file) {
  const auto& segments = file.plan.segments;
  for (const auto& s : segments)
    if (s.device != segments.front().device || s.stage >= 0) return {};
  return segments.empty() ? std::vector<int>() : file.problem.cluster->device(segments.front().device).cores;
}

ExecutorOptions executor_options(const PlanFile& file, int in_flight, const Control& control) {
  ExecutorOptions options;
  options.in_flight = in_flight > 0 ? in_flight : requests_at_once(file);
  options.spin_us = 0;  // a server's other threads need the cores
  options.deadline = Deadline::never(control.cancel);
  options.progress = control.progress;
  return options;
}

Status start_executor(OpenedPlan& opened, const ExecutorOptions& options) {
  if (fault_at(FaultPoint::kCompile)) return fault_error();
  HEDDLE_ASSIGN_OR_RETURN(opened.executor,
                          Executor::create(opened.file.problem, opened.file.plan, opened.model, options));
  return opened.executor->open();
}

Result<OpenedPlan> open_plan_here(const ModelSource& source, int in_flight, const Control& control) {
  OpenedPlan opened;
  HEDDLE_ASSIGN_OR_RETURN(opened.file, read_plan_file(source.plan));
  const auto& problem = opened.file.problem;
  HEDDLE_RETURN_IF_ERROR(check_one_host(opened.file));
  HEDDLE_ASSIGN_OR_RETURN(opened.model, load_model_of(problem, source.plan));
  opened.cores = only_cores(opened.file);
  auto started = start_executor(opened, executor_options(opened.file, in_flight, control));
  if (!started.ok()) return std::move(started).error().with_context(source.plan);
  return opened;
}

// A client's batches may hold several requests only where rows do not depend on each other.
Result<std::shared_ptr<PlanRunner>> checked_runner(std::shared_ptr<LocalModel>& local,
                                                   const OpenedPlan& opened) {
  const auto make = [&] {
    return PlanRunner::create(local, *opened.file.problem.graph, opened.executor, opened.cores);
  };
  auto runner = make();
  if (!local->served.batched || !runner->moves_data()) return runner;
  const auto rows = runner->check_rows();
  if (rows.ok()) return runner;
  if (rows.error().code() != Code::kVerificationFailed) return rows.error();
  auto& served = local->served;
  join_rows(served);
  served.note = rows.error().message() + ": a request has all " + std::to_string(served.max_rows) + " rows";
  auto model = local->sizes.begin()->second;
  local->sizes = {{1, std::move(model)}};
  served.max_rows = 1;
  return make();
}

Status verify_outputs(PlanRunner& runner, LocalModel& local, const PlanFile& file) {
  const Precision type = narrowest_type(file.problem, file.plan);
  HEDDLE_ASSIGN_OR_RETURN(const SlotErrors errors, difference_from_unsplit(runner, local, type));
  const bool narrow = type != Precision::kF32;
  const PrecisionError cost{type, errors.plan, errors.unsplit, roundings_per_layer(file.problem, file.plan)};
  const bool differs = narrow ? !cost.explained() : errors.worst.largest > kMostSplitDifference;
  const auto largest = fmt::format(" by at most {:.2g} of the largest", errors.worst.largest);
  const auto rounding = fmt::format("{}: mean error {:.2g} of the range, on a random request",
                                    precision_name(type), errors.plan.mean());
  if (differs)
    return Error(Code::kVerificationFailed,
                 "the plan's outputs differ from the unsplit model's" +
                     (narrow ? ", more than rounding explains: " + rounding : largest + " output"));
  if (narrow) local.served.precision = "in " + rounding;
  auto& note = local.served.note;
  note = "by a plan of " + file.planner +
         (narrow ? "" : ": outputs differ from the unsplit model's" + largest + ", on a random request") +
         (note.empty() ? "" : "; " + note);
  return {};
}

// What nothing computes has no tensors, only the time that it takes.
std::shared_ptr<LocalModel> emulated_model(const ModelSource& source) {
  auto local = std::make_shared<LocalModel>();
  local->source = source;
  local->served = *timed_model(source.name, 0, false);
  local->served.priority_levels = source.settings.priority_levels;
  local->served.default_priority = source.settings.default_priority;
  return local;
}

bool computes(const PlanFile& file) {
  return std::all_of(file.plan.segments.begin(), file.plan.segments.end(), [&file](const Segment& s) {
    const auto* backend = find_backend(file.problem.cluster->device(s.device).backend);
    return backend == nullptr || backend->computes();
  });
}

}  // namespace

Result<OpenedPlan> open_plan_on_ranks(RankGroup& group, const std::string& path, const std::string& placement,
                                      int in_flight, const Control& control) {
  Result<RankPlan> own = RankPlan();
  if (group.rank() == 0) {
    auto file = read_plan_file(path);
    auto model =
        file.ok() ? load_model_of(file->problem, path) : Result<std::shared_ptr<const Model>>(file.error());
    own = model.ok() ? Result<RankPlan>(RankPlan{std::move(*file), std::move(*model), {}}) : model.error();
  }
  HEDDLE_ASSIGN_OR_RETURN(auto shared, share_plan(group, std::move(own), path, placement));
  OpenedPlan opened{.file = std::move(shared.file), .model = std::move(shared.model)};
  auto options = executor_options(opened.file, in_flight, control);
  options.ranks = RankOptions{&group, std::move(shared.rank_of_device)};
  auto started = start_executor(opened, options);
  if (!started.ok()) return failed_on_ranks(std::move(started).error().with_context(path));
  return opened;
}

Result<ServedPlan> open_served_plan(const ModelSource& source, const ServedPlanOptions& options) {
  const auto report = [&options](const std::string& what) {
    log_line(LogLevel::kDebug, what);
    if (options.progress) options.progress->report({.what = what});
  };
  report("loading " + source.name);
  const Control control{options.deadline.token(), options.progress};
  HEDDLE_ASSIGN_OR_RETURN(const auto opened, options.on_ranks
                                                 ? *options.on_ranks
                                                 : open_plan_here(source, options.in_flight, control));
  const auto& file = opened.file;
  if (const auto name = served_name(file.problem); name != source.name)
    return invalid_input(source.plan + ": is a plan for '" + name + "' now, and '" + source.name +
                         "' is served; start another server for it");
  std::shared_ptr<LocalModel> local;
  if (opened.model && computes(file)) {
    HEDDLE_ASSIGN_OR_RETURN(local, planned_local_model(source, opened.model));
  } else {
    local = emulated_model(source);
  }
  ServedPlan out;
  out.cluster = file.problem.cluster->name();
  out.planner = file.planner;
  HEDDLE_ASSIGN_OR_RETURN(out.runner, checked_runner(local, opened));
  SlotTimes times;
  if (out.runner->moves_data()) {
    report("checking " + source.name);
    auto verified = verify_outputs(*out.runner, *local, file);
    if (!verified.ok()) return std::move(verified).error().with_context(source.plan);
    report("measuring " + source.name);
    HEDDLE_ASSIGN_OR_RETURN(times, measure_slots(*out.runner, *local, options));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const auto timeline, evaluate(file.problem, file.plan));
    times = planned_times(file, timeline, *out.runner);
  }
  local->served.slo_us = served_slo_us(source.settings, *std::max_element(times.us.begin(), times.us.end()));
  out.model = std::move(local);
  out.deployment = deployment_of(file, out.model->served, *out.runner, times, out.slot_of);
  HEDDLE_RETURN_IF_ERROR(check_deployment(out.deployment));
  return out;
}

std::vector<std::shared_ptr<DeviceRunner>> plan_runners(const ServedPlan& plan) {
  std::vector<std::shared_ptr<DeviceRunner>> runners;
  for (const int slot : plan.slot_of) runners.push_back(slot_runner(plan.runner, slot));
  return runners;
}

}  // namespace heddle
