#include "segment_loader.h"

#include <algorithm>
#include <chrono>

#include "engine.h"
#include "guarded.h"
#include "heddle/base/units.h"

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
    Status status = loader_.slots_[static_cast<size_t>(item_)].compiled->run(slot);
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
  for (int i = 0; i < load_workers_; ++i) threads_.emplace_back([this] { work(); });
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
    for (const int32_t item : order_) {
      loadings_[static_cast<size_t>(item)] = {};
      if (!slots_[static_cast<size_t>(item)].compiled) queue_.push_back(item);
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
    if (!retired_.empty()) {
      destroy_one(lock);
      continue;
    }
    if (next_ == queue_.size()) return;  // quit
    const int32_t item = queue_[next_];
    // In the plan's order only: whatever was admitted before can run and makes room, so nobody waits for
    // good.
    if (!may_load(item) && !engine_->stopped()) {
      changed_.wait_for(lock, kStopPoll);
      continue;
    }
    ++next_;
    used_ += items_[static_cast<size_t>(item)].bytes;
    if (!engine_->stopped()) peak_ = std::max(peak_, used_);
    lock.unlock();
    load(item);
    lock.lock();
  }
}

// Destroying takes time; it must not be the worker's that runs the next segment.
void SegmentLoader::destroy_one(std::unique_lock<std::mutex>& lock) {
  Retired retired = std::move(retired_.back());
  retired_.pop_back();
  ++destroying_;
  lock.unlock();
  retired.compiled.reset();
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
  loading.load_us = compiled->origin().load_us;
  loading.cached = compiled->origin().cached;
  slot.compiled = std::move(compiled);
  return {};
}

void SegmentLoader::load(int32_t item) {
  const LoadItem& it = items_[static_cast<size_t>(item)];
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
  engine_->open_gate(item);
}

void SegmentLoader::ran(int32_t item) {
  {
    const std::lock_guard lock(mutex_);
    // What was resident is not in the queue.
    if (loadings_[static_cast<size_t>(item)].begin_us >= 0) ++ran_;
    if (!stays_[static_cast<size_t>(item)]) {
      retired_.push_back(
          {std::move(slots_[static_cast<size_t>(item)].compiled), items_[static_cast<size_t>(item)].bytes});
    }
  }
  changed_.notify_all();
}

void SegmentLoader::release_all() {
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].compiled) retired_.push_back({std::move(slots_[i].compiled), items_[i].bytes});
  }
  while (!retired_.empty()) destroy_one(lock);
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
