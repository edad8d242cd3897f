#include "device_issuer.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/errors.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

// True if the plan's route passes through a host's memory.
bool through_host(const Cluster& cluster, std::span<const Hop> hops) {
  for (size_t i = 0; i + 1 < hops.size(); ++i) {
    const Link& link = cluster.link(hops[i].link);
    const NodeId reached = hops[i].forward ? link.b : link.a;
    if (cluster.node(reached).kind == Node::Kind::kHostMemory) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<DeviceIssuer>> DeviceIssuer::create(const IssuerSetup& setup) {
  std::unique_ptr<DeviceIssuer> issuer(new DeviceIssuer(setup));
  issuer->slots_.resize(setup.slot_lane.size());
  for (size_t slot = 0; slot < setup.slot_lane.size(); ++slot)
    HEDDLE_RETURN_IF_ERROR(issuer->prepare(setup, slot));
  return issuer;
}

Status DeviceIssuer::prepare(const IssuerSetup& setup, size_t slot) {
  SlotWork& s = slots_[slot];
  const Program& program = (*setup.programs)[static_cast<size_t>(setup.slot_lane[slot])];
  s.works.resize(program.tasks.size());
  int64_t staging = 0;
  for (size_t t = 0; t < program.tasks.size(); ++t)
    HEDDLE_RETURN_IF_ERROR(prepare_work(setup, slot, program.tasks[t], s.works[t], staging));
  if (staging > 0) {
    HEDDLE_ASSIGN_OR_RETURN(s.staging, accelerators_.of_memory(1).runtime->allocate_pinned(staging));
    std::byte* next = s.staging.get();
    for (TaskWork& w : s.works) {
      if (w.copies.size() < 2) continue;
      w.copies[0].to = next;
      w.copies[1].from = next;
      next += device_aligned(w.copies[0].bytes);
    }
  }
  for (size_t t = 0; t < s.works.size(); ++t) {
    TaskWork& w = s.works[t];
    const Task& task = program.tasks[t];
    w.sends = task.action == Action::kSend;
    w.segment = task.segment;
    w.fetches = task.enqueue == Enqueue::kFetch;
    w.passes =
        task.action == Action::kInstant && task.enqueue == Enqueue::kNothing && !program.waits[t].empty();
    for (const int32_t other : program.waits[t]) {
      const TaskWork& before = s.works[static_cast<size_t>(other)];
      // Work on one stream is already in order.
      if (before.enqueues && !(w.enqueues && w.first == before.last)) w.waits.push_back(&before);
    }
  }
  s.base_ns.assign(static_cast<size_t>(accelerators_.memories()), 0);
  s.base.resize(static_cast<size_t>(accelerators_.memories()));
  for (int32_t m = 1; m < accelerators_.memories(); ++m) {
    HEDDLE_ASSIGN_OR_RETURN(s.base[static_cast<size_t>(m)], accelerators_.of_memory(m).runtime->make_event());
  }
  return {};
}

Status DeviceIssuer::prepare_work(const IssuerSetup& setup, size_t slot, const Task& task, TaskWork& w,
                                  int64_t& staging) {
  if (task.enqueue == Enqueue::kNothing || task.enqueue == Enqueue::kCollect) return {};
  const Graph& graph = *setup.graphs[static_cast<size_t>(setup.slot_lane[slot])];
  const auto tensor = [&](int32_t id) { return graph.tensor(TensorId(id)); };
  w.enqueues = true;
  const auto one_copy = [&](int32_t memory, Copy copy) {
    w.first_memory = w.last_memory = memory;
    w.first = w.last = copy.stream;
    w.copies.push_back(copy);
  };
  if (task.enqueue == Enqueue::kUpload || task.enqueue == Enqueue::kFetch) {
    const bool up = task.enqueue == Enqueue::kUpload;
    const int32_t memory = accelerators_.memory(DeviceId(task.device));
    const Accelerator& a = accelerators_.of_memory(memory);
    std::byte* there = setup.address(slot, TensorId(task.tensor), memory);
    std::byte* here = setup.address(slot, TensorId(task.tensor), 0);
    one_copy(memory, {.stream = (up ? a.to_device : a.to_host).get(),
                      .kind = up ? CopyKind::kHostToDevice : CopyKind::kDeviceToHost,
                      .to = up ? there : here,
                      .from = up ? here : there,
                      .bytes = tensor(task.tensor).bytes});
    w.what = (up ? "copying the input '" : "copying the output '") + tensor(task.tensor).name +
             (up ? "' to" : "' from") + " device '" + a.name + "'";
  } else {
    const Step& step = setup.plan->steps[static_cast<size_t>(task.plan_step)];
    const Segment& segment = setup.plan->segments[step.segment.index()];
    if (task.enqueue == Enqueue::kRun) {
      w.first_memory = w.last_memory = accelerators_.memory(segment.device);
      w.first = w.last = setup.execution[step.segment.index()];
    } else if (task.enqueue == Enqueue::kLoad) {
      const int32_t memory = accelerators_.memory(step.to);
      const Accelerator& a = accelerators_.of_memory(memory);
      const ParameterBlock& block = setup.parameters[step.segment.index()];
      one_copy(memory, {.stream = a.to_device.get(),
                        .kind = CopyKind::kHostToDevice,
                        .to = block.device,
                        .from = block.host,
                        .bytes = block.bytes});
      w.what = "loading the parameters of segment '" + segment.name + "' to device '" + a.name + "'";
    } else {
      transfer(setup, slot, step, w, staging);
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(w.start, accelerators_.of_memory(w.first_memory).runtime->make_event());
  HEDDLE_ASSIGN_OR_RETURN(w.end, accelerators_.of_memory(w.last_memory).runtime->make_event());
  if (w.copies.size() > 1) {
    HEDDLE_ASSIGN_OR_RETURN(w.halfway, accelerators_.of_memory(w.first_memory).runtime->make_event());
  }
  return {};
}

// Copies directly if the plan's route avoids the host and peer access is possible, else through the host.
void DeviceIssuer::transfer(const IssuerSetup& setup, size_t slot, const Step& step, TaskWork& w,
                            int64_t& staging) {
  const Cluster& cluster = *setup.problem->cluster;
  const int32_t from = accelerators_.memory(step.from), to = accelerators_.memory(step.to);
  const Graph& graph = *setup.graphs[static_cast<size_t>(setup.slot_lane[slot])];
  const int64_t bytes = graph.tensor(step.tensor).bytes;
  std::byte* source = setup.address(slot, step.tensor, from);
  std::byte* target = setup.address(slot, step.tensor, to);
  w.what = "copying tensor '" + graph.tensor(step.tensor).name + "' from device '" +
           cluster.device(step.from).name + "' to '" + cluster.device(step.to).name + "'";
  w.first_memory = from != 0 ? from : to;
  w.last_memory = to != 0 ? to : from;
  const Accelerator* out = from != 0 ? &accelerators_.of_memory(from) : nullptr;
  const Accelerator* in = to != 0 ? &accelerators_.of_memory(to) : nullptr;
  const Route* route = cluster.route(step.from, step.to);
  std::span<const Hop> hops;
  if (step.route >= 0)
    hops = setup.plan->routes[static_cast<size_t>(step.route)];
  else if (route != nullptr)
    hops = route->hops;
  if (out != nullptr && in != nullptr && !through_host(cluster, hops) &&
      in->runtime->reaches(*out->runtime)) {
    w.copies.push_back({in->peer.get(), CopyKind::kDeviceToDevice, target, source, bytes, out->runtime});
    w.first_memory = to;
  } else {
    if (out != nullptr)
      w.copies.push_back({out->to_host.get(), CopyKind::kDeviceToHost, target, source, bytes, nullptr});
    if (in != nullptr)
      w.copies.push_back({in->to_device.get(), CopyKind::kHostToDevice, target, source, bytes, nullptr});
    if (w.copies.size() > 1) staging += device_aligned(bytes);
  }
  w.first = w.copies.front().stream;
  w.last = w.copies.back().stream;
}

Status DeviceIssuer::begin_request(int slot, int64_t begin_ns) {
  SlotWork& s = slots_[static_cast<size_t>(slot)];
  s.begin_ns = begin_ns;
  s.faults = faults();
  for (TaskWork& w : s.works) w.done = false;
  for (int32_t m = 1; m < accelerators_.memories(); ++m) {
    const auto i = static_cast<size_t>(m);
    s.base_ns[i] = now_ns();
    HEDDLE_RETURN_IF_ERROR(accelerators_.of_memory(m).clock->record(*s.base[i]));
  }
  return {};
}

Status DeviceIssuer::start(TaskWork& w) {
  for (const TaskWork* before : w.waits) HEDDLE_RETURN_IF_ERROR(w.first->wait(*before->end));
  const DeviceEvent* loaded = loaded_ && w.segment >= 0 ? loaded_(w.segment) : nullptr;
  if (loaded != nullptr) HEDDLE_RETURN_IF_ERROR(w.first->wait(*loaded));
  return w.first->record(*w.start);
}

Status DeviceIssuer::wait_on_host(const TaskWork& w) {
  for (const TaskWork* before : w.waits) HEDDLE_RETURN_IF_ERROR(before->end->synchronize());
  return {};
}

Status DeviceIssuer::before_run(int slot, int32_t task) {
  TaskWork& w = work(slot, task);
  return w.enqueues ? start(w) : wait_on_host(w);
}

Status DeviceIssuer::after_run(int slot, int32_t task) {
  TaskWork& w = work(slot, task);
  if (!w.enqueues) return {};
  HEDDLE_RETURN_IF_ERROR(w.last->record(*w.end));
  w.done = true;
  return {};
}

Status DeviceIssuer::enqueue(int slot, int32_t task) {
  TaskWork& w = work(slot, task);
  if (!w.enqueues) return wait_on_host(w);  // kCollect at the request's end
  Status status = issue(w);
  if (!status.ok()) return std::move(status).error().with_context(w.what);
  w.done = true;
  return {};
}

Result<bool> DeviceIssuer::reached(int slot, int32_t task) {
  const TaskWork& w = work(slot, task);
  const auto over = [](const TaskWork& one) -> Result<bool> {
    if (!one.done) return true;
    HEDDLE_ASSIGN_OR_RETURN(const bool done, one.end->done());
    if (done) HEDDLE_RETURN_IF_ERROR(one.end->synchronize());  // at once, for the device's error
    return done;
  };
  if (w.enqueues) return over(w);
  Status failure;
  for (const TaskWork* before : w.waits) {
    auto done = over(*before);
    if (done.ok() && !*done) return false;  // even if another has failed: this one may still write
    if (!done.ok() && failure.ok()) failure = std::move(done).error();
  }
  if (!failure.ok()) return std::move(failure).error();
  return true;
}

Status DeviceIssuer::issue(TaskWork& w) {
  HEDDLE_RETURN_IF_ERROR(start(w));
  for (size_t i = 0; i < w.copies.size(); ++i) {
    const Copy& c = w.copies[i];
    if (i > 0) {
      HEDDLE_RETURN_IF_ERROR(w.copies[i - 1].stream->record(*w.halfway));
      HEDDLE_RETURN_IF_ERROR(c.stream->wait(*w.halfway));
    }
    HEDDLE_RETURN_IF_ERROR(c.peer != nullptr ? c.stream->copy_peer(c.to, *c.peer, c.from, c.bytes)
                                             : c.stream->copy(c.kind, c.to, c.from, c.bytes));
  }
  return w.last->record(*w.end);
}

uint64_t DeviceIssuer::faults() const {
  uint64_t sum = 0;
  for (int32_t m = 1; m < accelerators_.memories(); ++m)
    for (const StreamRuntime* runtime : accelerators_.of_memory(m).runtimes) sum += runtime->faults();
  return sum;
}

Status DeviceIssuer::drain() {
  Status first;
  for (int32_t m = 1; m < accelerators_.memories(); ++m)
    for (StreamRuntime* runtime : accelerators_.of_memory(m).runtimes)
      if (Status s = runtime->drain(); first.ok())
        first = with_context(std::move(s), accelerators_.of_memory(m).name);
  return first;
}

Status DeviceIssuer::end_request(int slot, bool failed, std::span<int64_t> start_ns,
                                 std::span<int64_t> finish_ns) {
  SlotWork& s = slots_[static_cast<size_t>(slot)];
  if (failed) {
    // Enqueued work may still write to memory of the next request. The engine already has the first error.
    static_cast<void>(drain().ok());
    return {};
  }
  // After a fault an accelerator does nothing for any request until it is drained.
  if (s.faults != faults()) {
    const Status why = drain();
    return why.ok()
               ? internal_error(
                     "another request failed on an accelerator, which may have left out work of this one")
               : why;
  }
  const auto at = [&](const DeviceEvent& event, int32_t memory) -> Result<int64_t> {
    const auto m = static_cast<size_t>(memory);
    const StreamRuntime& runtime = *accelerators_.of_memory(memory).runtime;
    if (const auto ns = runtime.host_ns(event)) return *ns;
    HEDDLE_ASSIGN_OR_RETURN(const double us, runtime.elapsed_us(*s.base[m], event));
    return s.base_ns[m] + static_cast<int64_t>(std::llround(us * 1000));
  };
  for (size_t t = 0; t < s.works.size(); ++t) {
    const TaskWork& w = s.works[t];
    if (!w.enqueues && w.passes) {
      // The task took no time, at the moment when its last predecessor was done.
      int64_t last = s.begin_ns;
      for (const TaskWork* before : w.waits) {
        HEDDLE_ASSIGN_OR_RETURN(const int64_t ns, at(*before->end, before->last_memory));
        last = std::max(last, ns);
      }
      start_ns[t] = finish_ns[t] = last;
    }
    // A message's transfer includes the copy to the host that it needs.
    for (const TaskWork* before : w.waits) {
      if (!w.sends) break;
      const DeviceEvent& from = before->fetches ? *before->start : *before->end;
      HEDDLE_ASSIGN_OR_RETURN(const int64_t ns, at(from, before->last_memory));
      start_ns[t] = std::clamp(ns, start_ns[t], finish_ns[t]);
    }
    if (!w.enqueues || !w.done) continue;
    HEDDLE_ASSIGN_OR_RETURN(start_ns[t], at(*w.start, w.first_memory));
    HEDDLE_ASSIGN_OR_RETURN(finish_ns[t], at(*w.end, w.last_memory));
    start_ns[t] = std::max(start_ns[t], s.begin_ns);
    finish_ns[t] = std::max(finish_ns[t], start_ns[t]);
  }
  return {};
}

}  // namespace heddle
