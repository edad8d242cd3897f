#include "segment_loader.h"

#include <algorithm>
#include <chrono>

#include "accelerators.h"
#include "engine.h"
#include "heddle/base/own_cores.h"
#include "heddle/base/units.h"
#include "heddle/runtime/affinity.h"
#include "threads/guarded.h"

namespace heddle {
namespace {

// How often a worker that waits for memory looks whether the request was stopped.
constexpr auto kStopPoll = std::chrono::milliseconds(20);

double us_between(int64_t from_ns, int64_t to_ns) { return static_cast<double>(to_ns - from_ns) / 1000; }

}  // namespace

class SegmentLoader::StandIn final : public CompiledSegment {
 public:
  StandIn(SegmentLoader& loader, int32_t item) : loader_(loader), item_(item) {}
  Status bind(int, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    Slot& slot = loader_.slots_[static_cast<size_t>(item_)];
    slot.inputs.assign(inputs.begin(), inputs.end());
    slot.outputs.assign(outputs.begin(), outputs.end());
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
    return Error(Code::kInvalidInput,
                 "expected 1 to 64 load workers, not " + std::to_string(options.load_workers));
  }
  if (options.budget_bytes < 0) {
    return Error(Code::kInvalidInput, "the budget must be a positive number of bytes, or 0 for none, not " +
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
      stays_(items_.size(), true),
      slots_(items_.size()),
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

// The segments that run first stay: nothing runs before them that could hide their loading. Beside them there
// is room for the two largest of the others, so that one is loaded while the one before it runs; where that
// is more than the budget, for the largest alone.
Status SegmentLoader::choose_residents() {
  if (budget_ == 0) return {};
  int64_t total = 0;
  for (const int32_t item : order_) {
    const LoadItem& it = items_[static_cast<size_t>(item)];
    total += it.bytes;
    if (it.bytes > budget_) {
      return Error(Code::kInfeasible, it.place + " has " + format_bytes(it.bytes) +
                                          " of parameters, more than the budget of " + format_bytes(budget_) +
                                          "; give a larger budget or cut the model into more segments");
    }
  }
  if (total <= budget_) return {};
  // Backwards: room[i] for the segments from place i on.
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
  for (size_t i = keep; i < order_.size(); ++i) stays_[static_cast<size_t>(order_[i])] = false;
  return {};
}

void SegmentLoader::start(Engine& engine) {
  engine_ = &engine;
  // Workers that wake at once may share a core for milliseconds before the system moves one of them, and so
  // may the threads that a compiler starts and waits for; those inherit the worker's cores. Where there are
  // two for each worker there is room without that.
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
  for (size_t i = 0; i < items_.size(); ++i) closed[i] = items_[i].device != nullptr && !slots_[i].compiled;
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
      if (slots_[static_cast<size_t>(item)].compiled) continue;
      queue_.push_back(item);
      slots_[static_cast<size_t>(item)].finished = false;
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
    if (retired_.empty() && next_ == queue_.size()) return;  // quit
    // In the plan's order only: whatever was admitted before can run and makes room, so nobody waits for
    // good.
    const bool loads = next_ < queue_.size() && (may_load(queue_[next_]) || engine_->stopped());
    // What an accelerator still runs is waited for where nothing can be loaded.
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
    // Without overlap: the one before it has run, on an accelerator when its event is reached.
    std::shared_ptr<DeviceEvent> before;
    if (!overlap_ && next_ > 0) before = slots_[static_cast<size_t>(queue_[next_ - 1])].ran;
    ++next_;
    used_ += items_[static_cast<size_t>(item)].bytes;
    if (!engine_->stopped()) peak_ = std::max(peak_, used_);
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

// Destroying takes time; it must not be the worker's that runs the next segment.
void SegmentLoader::destroy(size_t which, std::unique_lock<std::mutex>& lock) {
  Retired retired = std::move(retired_[which]);
  retired_.erase(retired_.begin() + static_cast<std::ptrdiff_t>(which));
  ++destroying_;
  lock.unlock();
  // What an accelerator still reads must stay. An error is the request's, and found at its end.
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
  Slot& slot = slots_[static_cast<size_t>(item)];
  HEDDLE_ASSIGN_OR_RETURN(auto compiled, it.device->compile(it.spec, 1));
  HEDDLE_RETURN_IF_ERROR(compiled->bind(0, slot.inputs, slot.outputs));
  if (it.accelerator != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(slot.parameters, make_room(item, *compiled));
  }
  loading.load_us = compiled->origin().load_us;
  loading.cached = compiled->origin().cached;
  slot.compiled = std::move(compiled);
  return {};
}

Result<std::shared_ptr<std::byte[]>> SegmentLoader::make_room(int32_t item, CompiledSegment& compiled) {
  std::shared_ptr<std::byte[]> room;
  const LoadItem& it = items_[static_cast<size_t>(item)];
  Slot& slot = slots_[static_cast<size_t>(item)];
  StreamRuntime& runtime = *it.accelerator->runtime;
  if (!slot.loaded) {
    HEDDLE_ASSIGN_OR_RETURN(slot.loaded, runtime.make_event());
  }
  HEDDLE_ASSIGN_OR_RETURN(slot.ran, runtime.make_event());
  const auto host = compiled.host_parameters();
  if (host.empty()) return room;
  if (it.spec.host_access) {
    HEDDLE_ASSIGN_OR_RETURN(std::byte* const mapped, runtime.mapped_address(host.data()));
    HEDDLE_RETURN_IF_ERROR(compiled.place_parameters(mapped));
    return room;
  }
  // How much it is shows when it is compiled, so no place can be planned before.
  HEDDLE_ASSIGN_OR_RETURN(room, runtime.allocate(static_cast<int64_t>(host.size())));
  HEDDLE_RETURN_IF_ERROR(compiled.place_parameters(room.get()));
  return room;
}

Status SegmentLoader::copy_parameters(int32_t item) {
  const LoadItem& it = items_[static_cast<size_t>(item)];
  Slot& slot = slots_[static_cast<size_t>(item)];
  if (!slot.parameters) return {};
  const auto host = slot.compiled->host_parameters();
  DeviceStream& stream = *it.accelerator->to_device;
  for (const int32_t before : it.copied_before) {
    const Slot& other = slots_[static_cast<size_t>(before)];
    if (other.loaded) HEDDLE_RETURN_IF_ERROR(stream.wait(*other.loaded));
  }
  HEDDLE_RETURN_IF_ERROR(stream.copy(CopyKind::kHostToDevice, slot.parameters.get(), host.data(),
                                     static_cast<int64_t>(host.size())));
  return stream.record(*slot.loaded);
}

// Copies start in the plan's order, whichever segment is made first; the worker that made the next one goes
// on with those behind it.
void SegmentLoader::copy_in_order(int32_t item) {
  std::unique_lock lock(mutex_);
  slots_[static_cast<size_t>(item)].finished = true;
  if (copying_) return;
  copying_ = true;
  while (next_copy_ < copies_.size() && slots_[static_cast<size_t>(copies_[next_copy_])].finished) {
    const int32_t next = copies_[next_copy_++];
    lock.unlock();
    if (!engine_->stopped()) {
      Status status = run_guarded([&] { return copy_parameters(next); });
      if (!status.ok())
        engine_->fail(std::move(status).error().with_context(items_[static_cast<size_t>(next)].place));
    }
    lock.lock();
    // The request may end with the last gate, and the next one begin: then nothing is left here.
    const bool last = next_copy_ == copies_.size();
    if (last) copying_ = false;
    lock.unlock();
    engine_->open_gate(next);
    if (last) return;
    lock.lock();
  }
  copying_ = false;
}

Status SegmentLoader::run(int32_t item, int slot) {
  Slot& s = slots_[static_cast<size_t>(item)];
  const LoadItem& it = items_[static_cast<size_t>(item)];
  Status status = s.compiled->run(slot);
  if (it.accelerator == nullptr) return status;
  // Also after an error: a part of it may be under way.
  Status recorded = it.device->execution_stream()->record(*s.ran);
  return status.ok() ? std::move(recorded) : std::move(status);
}

SegmentLoader::Retired SegmentLoader::retire(int32_t item) {
  Slot& slot = slots_[static_cast<size_t>(item)];
  // Who loads without overlap asks for the run's end once more.
  return {std::move(slot.parameters), slot.ran, std::move(slot.compiled),
          items_[static_cast<size_t>(item)].bytes};
}

void SegmentLoader::load(int32_t item, const DeviceEvent* before) {
  const LoadItem& it = items_[static_cast<size_t>(item)];
  if (before != nullptr) static_cast<void>(before->synchronize().ok());  // its error is the request's
  SegmentLoading loading;
  bool loaded = false;
  if (!engine_->stopped()) {
    const int64_t begin = now_ns();
    Status status = run_guarded([&] { return make(item, loading); });
    const int64_t ready = now_ns();
    loading.begin_us = us_between(begin_ns_, begin);
    loading.ready_us = us_between(begin_ns_, ready);
    loading.load_us = std::min(loading.load_us, us_between(begin, ready));
    loading.compile_us = us_between(begin, ready) - loading.load_us;
    loaded = status.ok();
    if (!loaded) engine_->fail(std::move(status).error().with_context(it.place));
  }
  {
    const std::lock_guard lock(mutex_);
    loadings_[static_cast<size_t>(item)] = loading;
    if (!loaded) used_ -= it.bytes;
  }
  if (!loaded) changed_.notify_all();
  if (it.accelerator != nullptr) return copy_in_order(item);
  engine_->open_gate(item);
}

void SegmentLoader::ran(int32_t item) {
  {
    const std::lock_guard lock(mutex_);
    // What was resident is not in the queue.
    if (loadings_[static_cast<size_t>(item)].begin_us >= 0) ++ran_;
    if (!stays_[static_cast<size_t>(item)]) retired_.push_back(retire(item));
  }
  changed_.notify_all();
}

void SegmentLoader::release_all() {
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].compiled) retired_.push_back(retire(static_cast<int32_t>(i)));
  }
  while (!retired_.empty()) destroy(0, lock);
  changed_.wait(lock, [&] { return destroying_ == 0 && retired_.empty(); });
}

Status SegmentLoader::store() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].compiled) continue;
    Status status = run_guarded([&] { return slots_[i].compiled->store(); });
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
