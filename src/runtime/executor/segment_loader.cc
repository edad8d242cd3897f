#include "segment_loader.h"

#include <algorithm>
#include <chrono>

#include "accelerators.h"
#include "heddle/base/own_cores.h"
#include "heddle/base/units.h"
#include "heddle/runtime/affinity.h"
#include "task_runner.h"
#include "threads/guarded.h"

namespace heddle {
namespace {

// Interval at which a worker that waits for memory checks whether the request was stopped.
constexpr auto kStopPoll = std::chrono::milliseconds(20);

double us_between(int64_t from_ns, int64_t to_ns) { return static_cast<double>(to_ns - from_ns) / 1000; }

}  // namespace

class SegmentLoader::StandIn final : public CompiledSegment {
 public:
  StandIn(SegmentLoader& loader, int32_t item) : loader_(loader), item_(item) {}
  Status bind(int, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    LoadedSegment& segment = loader_.loaded_[static_cast<size_t>(item_)];
    segment.inputs.assign(inputs.begin(), inputs.end());
    segment.outputs.assign(outputs.begin(), outputs.end());
    return {};
  }
  Status run(int slot) override {
    Status status = loader_.run(item_, slot);
    loader_.ran(item_);
    return status;
  }

 private:
  SegmentLoader& loader_;
  int32_t item_;
};

Result<std::unique_ptr<SegmentLoader>> SegmentLoader::create(std::vector<LoadItem> items,
                                                             std::vector<int32_t> order,
                                                             const ColdOptions& options) {
  if (options.load_workers < 1 || options.load_workers > 64) {
    return invalid_input("expected 1 to 64 load workers, not " + std::to_string(options.load_workers));
  }
  if (options.budget_bytes < 0) {
    return invalid_input("the budget must be a positive number of bytes, or 0 for none, not " +
                         std::to_string(options.budget_bytes));
  }
  std::unique_ptr<SegmentLoader> loader(new SegmentLoader(std::move(items), std::move(order), options));
  HEDDLE_RETURN_IF_ERROR(loader->choose_residents());
  return loader;
}

SegmentLoader::SegmentLoader(std::vector<LoadItem> items, std::vector<int32_t> order,
                             const ColdOptions& options)
    : items_(std::move(items)),
      order_(std::move(order)),
      load_workers_(options.load_workers),
      budget_(options.budget_bytes),
      overlap_(options.overlap),
      stay_resident_(items_.size(), true),
      loaded_(items_.size()),
      loadings_(items_.size()) {}

SegmentLoader::~SegmentLoader() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

std::unique_ptr<CompiledSegment> SegmentLoader::stand_in(int32_t item) {
  return std::make_unique<StandIn>(*this, item);
}

// Chooses the first segments of the order to stay, since no earlier run could hide their loading. The budget
// keeps room for the two largest others, so that one is loaded while the previous one runs. If that exceeds
// the budget, it keeps room for the largest alone.
Status SegmentLoader::choose_residents() {
  if (budget_ == 0) return {};
  int64_t total = 0;
  for (const int32_t item : order_) {
    const LoadItem& it = items_[static_cast<size_t>(item)];
    total += it.bytes;
    if (it.bytes > budget_) {
      return infeasible(it.place + " has " + format_bytes(it.bytes) +
                        " of parameters, more than the budget of " + format_bytes(budget_) +
                        "; give a larger budget or cut the model into more segments");
    }
  }
  if (total <= budget_) return {};
  // Backwards: room for the segments from position i on.
  int64_t first = 0, second = 0, kept = total;
  size_t keep = 0;
  for (size_t i = order_.size(); i-- > 0;) {
    const int64_t bytes = items_[static_cast<size_t>(order_[i])].bytes;
    kept -= bytes;
    if (bytes > first) {
      second = first;
      first = bytes;
    } else {
      second = std::max(second, bytes);
    }
    const bool fits_two = kept + first + second <= budget_;
    if (fits_two) {
      keep = i;
      break;
    }
  }
  for (size_t i = keep; i < order_.size(); ++i) stay_resident_[static_cast<size_t>(order_[i])] = false;
  return {};
}

void SegmentLoader::start(TaskRunner& tasks) {
  tasks_ = &tasks;
  // Workers that wake together may share a core for milliseconds until the system moves one. The same holds
  // for the threads that a compiler starts and waits for, which inherit the worker's cores. With at least two
  // cores per worker, binding is not needed.
  const auto cores = static_cast<int>(own_cores().size());
  const bool bound = load_workers_ > 1 && cores < 2 * load_workers_;
  for (int i = 0; i < load_workers_; ++i) {
    threads_.emplace_back([this, i, bound] {
      const AffinityGuard own(bound ? core_group(i, load_workers_) : std::vector<int>());
      work();
    });
  }
}

void SegmentLoader::close_gates(std::vector<bool>& closed) const {
  for (size_t i = 0; i < items_.size(); ++i) closed[i] = items_[i].device != nullptr && !loaded_[i].compiled;
}

void SegmentLoader::begin(int64_t begin_ns) {
  {
    const std::lock_guard lock(mutex_);
    begin_ns_ = begin_ns;
    queue_.clear();
    next_ = ran_ = 0;
    copies_.clear();
    next_copy_ = 0;
    for (const int32_t item : order_) {
      loadings_[static_cast<size_t>(item)] = {};
      if (loaded_[static_cast<size_t>(item)].compiled) continue;
      queue_.push_back(item);
      loaded_[static_cast<size_t>(item)].finished = false;
      if (items_[static_cast<size_t>(item)].accelerator != nullptr) copies_.push_back(item);
    }
  }
  changed_.notify_all();
}

bool SegmentLoader::may_load(int32_t item) const {
  if (!overlap_ && ran_ < next_) return false;
  return budget_ == 0 || used_ + items_[static_cast<size_t>(item)].bytes <= budget_;
}

void SegmentLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || !retired_.empty() || next_ < queue_.size(); });
    if (retired_.empty() && next_ == queue_.size()) return;  // quitting
    // Segments load only in the plan's order. Every segment admitted earlier can run and then frees memory,
    // so there is no deadlock.
    const bool loads = next_ < queue_.size() && (may_load(queue_[next_]) || tasks_->stopped());
    // If nothing can be loaded, wait for a segment that an accelerator is still running.
    const auto over = std::find_if(retired_.begin(), retired_.end(), [](const auto& r) { return r.over(); });
    if (over != retired_.end() || (!loads && !retired_.empty())) {
      destroy(over != retired_.end() ? static_cast<size_t>(over - retired_.begin()) : 0, lock);
      continue;
    }
    if (!loads) {
      changed_.wait_for(lock, kStopPoll);
      continue;
    }
    const int32_t item = queue_[next_];
    // Without overlap, the previous segment must have run; on an accelerator its event says so.
    std::shared_ptr<DeviceEvent> before;
    if (!overlap_ && next_ > 0) before = loaded_[static_cast<size_t>(queue_[next_ - 1])].ran;
    ++next_;
    used_ += items_[static_cast<size_t>(item)].bytes;
    if (!tasks_->stopped()) peak_ = std::max(peak_, used_);
    lock.unlock();
    load(item, before.get());
    lock.lock();
  }
}

bool SegmentLoader::Retired::over() const {
  if (!ran) return true;
  const auto done = ran->done();
  return !done.ok() || *done;
}

// Destroying takes time, so the thread that runs the next segment must not do it.
void SegmentLoader::destroy(size_t which, std::unique_lock<std::mutex>& lock) {
  Retired retired = std::move(retired_[which]);
  retired_.erase(retired_.begin() + static_cast<std::ptrdiff_t>(which));
  ++destroying_;
  lock.unlock();
  // Memory that an accelerator still reads must stay. The request reports errors at its end.
  if (retired.ran) static_cast<void>(retired.ran->synchronize().ok());
  retired.compiled.reset();
  retired.parameters.reset();
  lock.lock();
  --destroying_;
  used_ -= retired.bytes;
  changed_.notify_all();
}

Status SegmentLoader::make(int32_t item, SegmentLoading& loading) {
  const LoadItem& it = items_[static_cast<size_t>(item)];
  LoadedSegment& segment = loaded_[static_cast<size_t>(item)];
  HEDDLE_ASSIGN_OR_RETURN(auto compiled, it.device->compile(it.spec, 1));
  HEDDLE_RETURN_IF_ERROR(compiled->bind(0, segment.inputs, segment.outputs));
  if (it.accelerator != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(segment.parameters, make_room(item, *compiled));
  }
  loading.load_us = compiled->origin().load_us;
  loading.cached = compiled->origin().cached;
  segment.compiled = std::move(compiled);
  return {};
}

Result<std::shared_ptr<std::byte[]>> SegmentLoader::make_room(int32_t item, CompiledSegment& compiled) {
  std::shared_ptr<std::byte[]> room;
  const LoadItem& it = items_[static_cast<size_t>(item)];
  LoadedSegment& segment = loaded_[static_cast<size_t>(item)];
  StreamRuntime& runtime = *it.accelerator->runtime;
  if (!segment.loaded) {
    HEDDLE_ASSIGN_OR_RETURN(segment.loaded, runtime.make_event());
  }
  HEDDLE_ASSIGN_OR_RETURN(segment.ran, runtime.make_event());
  const auto host = compiled.host_parameters();
  if (host.empty()) return room;
  if (it.spec.host_access) {
    HEDDLE_ASSIGN_OR_RETURN(std::byte* const mapped, runtime.mapped_address(host.data()));
    HEDDLE_RETURN_IF_ERROR(compiled.place_parameters(mapped));
    return room;
  }
  // The size is known only after compiling, so memory cannot be planned before.
  HEDDLE_ASSIGN_OR_RETURN(room, runtime.allocate(static_cast<int64_t>(host.size())));
  HEDDLE_RETURN_IF_ERROR(compiled.place_parameters(room.get()));
  return room;
}

Status SegmentLoader::copy_parameters(int32_t item) {
  const LoadItem& it = items_[static_cast<size_t>(item)];
  LoadedSegment& segment = loaded_[static_cast<size_t>(item)];
  if (!segment.parameters) return {};
  const auto host = segment.compiled->host_parameters();
  DeviceStream& stream = *it.accelerator->to_device;
  for (const int32_t before : it.copied_before) {
    const LoadedSegment& other = loaded_[static_cast<size_t>(before)];
    if (other.loaded) HEDDLE_RETURN_IF_ERROR(stream.wait(*other.loaded));
  }
  HEDDLE_RETURN_IF_ERROR(stream.copy(CopyKind::kHostToDevice, segment.parameters.get(), host.data(),
                                     static_cast<int64_t>(host.size())));
  return stream.record(*segment.loaded);
}

// Copies start in the plan's order, in whatever order the segments are made. The worker that makes the next
// one also starts the copies behind it.
void SegmentLoader::copy_in_order(int32_t item) {
  std::unique_lock lock(mutex_);
  loaded_[static_cast<size_t>(item)].finished = true;
  if (copying_) return;
  copying_ = true;
  while (next_copy_ < copies_.size() && loaded_[static_cast<size_t>(copies_[next_copy_])].finished) {
    const int32_t next = copies_[next_copy_++];
    lock.unlock();
    if (!tasks_->stopped()) {
      Status status = run_guarded([&] { return copy_parameters(next); });
      if (!status.ok())
        tasks_->fail(std::move(status).error().with_context(items_[static_cast<size_t>(next)].place));
    }
    lock.lock();
    // After the last gate the request may end and the next one begin, so do not touch anything here.
    const bool last = next_copy_ == copies_.size();
    if (last) copying_ = false;
    lock.unlock();
    tasks_->open_gate(next);
    if (last) return;
    lock.lock();
  }
  copying_ = false;
}

Status SegmentLoader::run(int32_t item, int slot) {
  LoadedSegment& segment = loaded_[static_cast<size_t>(item)];
  const LoadItem& it = items_[static_cast<size_t>(item)];
  Status status = segment.compiled->run(slot);
  if (it.accelerator == nullptr) return status;
  // Record it even after an error, since a part of the run may be in flight.
  Status recorded = it.device->execution_stream()->record(*segment.ran);
  return status.ok() ? std::move(recorded) : std::move(status);
}

SegmentLoader::Retired SegmentLoader::retire(int32_t item) {
  LoadedSegment& segment = loaded_[static_cast<size_t>(item)];
  // Loading without overlap still needs the event of the run's end.
  return {std::move(segment.parameters), segment.ran, std::move(segment.compiled),
          items_[static_cast<size_t>(item)].bytes};
}

void SegmentLoader::load(int32_t item, const DeviceEvent* before) {
  const LoadItem& it = items_[static_cast<size_t>(item)];
  if (before != nullptr) static_cast<void>(before->synchronize().ok());  // the request reports its error
  SegmentLoading loading;
  bool loaded = false;
  if (!tasks_->stopped()) {
    const int64_t begin = now_ns();
    Status status = run_guarded([&] { return make(item, loading); });
    const int64_t ready = now_ns();
    loading.begin_us = us_between(begin_ns_, begin);
    loading.ready_us = us_between(begin_ns_, ready);
    loading.load_us = std::min(loading.load_us, us_between(begin, ready));
    loading.compile_us = us_between(begin, ready) - loading.load_us;
    loaded = status.ok();
    if (!loaded) tasks_->fail(std::move(status).error().with_context(it.place));
  }
  {
    const std::lock_guard lock(mutex_);
    loadings_[static_cast<size_t>(item)] = loading;
    if (!loaded) used_ -= it.bytes;
  }
  if (!loaded) changed_.notify_all();
  if (it.accelerator != nullptr) return copy_in_order(item);
  tasks_->open_gate(item);
}

void SegmentLoader::ran(int32_t item) {
  {
    const std::lock_guard lock(mutex_);
    // Resident segments are not in the queue.
    if (loadings_[static_cast<size_t>(item)].begin_us >= 0) ++ran_;
    if (!stay_resident_[static_cast<size_t>(item)]) retired_.push_back(retire(item));
  }
  changed_.notify_all();
}

void SegmentLoader::release_all() {
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < loaded_.size(); ++i) {
    if (loaded_[i].compiled) retired_.push_back(retire(static_cast<int32_t>(i)));
  }
  while (!retired_.empty()) destroy(0, lock);
  changed_.wait(lock, [&] { return destroying_ == 0 && retired_.empty(); });
}

Status SegmentLoader::store() {
  for (size_t i = 0; i < loaded_.size(); ++i) {
    if (!loaded_[i].compiled) continue;
    Status status = run_guarded([&] { return loaded_[i].compiled->store(); });
    if (!status.ok()) return std::move(status).error().with_context(items_[i].place);
  }
  return {};
}

std::vector<SegmentLoading> SegmentLoader::loadings() const {
  const std::lock_guard lock(mutex_);
  return loadings_;
}

int64_t SegmentLoader::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace heddle
