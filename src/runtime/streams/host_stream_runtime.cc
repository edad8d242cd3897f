// The stream runtime without an accelerator: streams are threads with a queue, copies are memcpy().
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/base/units.h"
#include "heddle/runtime/stream_runtime.h"
#include "heddle/runtime/tensor.h"
#include "threads/guarded.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr std::string_view kHostFamily = "host";

using Work = std::function<Status()>;

// State that the streams, events and memory of one device share.
struct HostDeviceState {
  std::atomic<int64_t> used_bytes{0};
  std::atomic<int> under_way{0};  // work items that are enqueued and not done
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable idle;
  std::optional<Error> error;
  uint64_t faults = 0;  // changes of `failed`

  void fail(Error e) {
    const std::lock_guard lock(mutex);
    if (error) return;
    error.emplace(std::move(e));
    ++faults;
    failed.store(true, std::memory_order_release);
  }
  Status status() {
    if (!failed.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex);
    return error ? Status(*error) : Status();
  }
};

struct HostEventState {
  std::mutex mutex;
  std::condition_variable reached;
  uint64_t recorded = 0, done = 0;  // number of records, and of records reached
  int64_t at_ns = 0;                // time when it was last reached

  void wait_for(uint64_t ticket) {
    std::unique_lock lock(mutex);
    reached.wait(lock, [&] { return done >= ticket; });
  }
  uint64_t ticket() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
};

class HostEvent final : public DeviceEvent {
 public:
  explicit HostEvent(std::shared_ptr<HostDeviceState> device)
      : device_(std::move(device)), state_(std::make_shared<HostEventState>()) {}
  Status synchronize() const override {
    state_->wait_for(state_->ticket());
    return device_->status();
  }
  Result<bool> done() const override {
    const std::lock_guard lock(state_->mutex);
    return state_->done >= state_->recorded;
  }
  std::string_view family() const override { return kHostFamily; }
  const std::shared_ptr<HostEventState>& state() const { return state_; }

 private:
  std::shared_ptr<HostDeviceState> device_;
  std::shared_ptr<HostEventState> state_;
};

class HostGraph final : public DeviceGraph {
 public:
  std::vector<Work> works;
};

class HostStream final : public DeviceStream {
 public:
  explicit HostStream(std::shared_ptr<HostDeviceState> device)
      : device_(std::move(device)), thread_([this] { serve(); }) {}
  ~HostStream() override {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  Status record(DeviceEvent& event) override {
    HEDDLE_RETURN_IF_ERROR(no_capture("record an event"));
    auto state = static_cast<HostEvent&>(event).state();
    uint64_t ticket = 0;
    {
      const std::lock_guard lock(state->mutex);
      ticket = ++state->recorded;
    }
    // Record it even after an error, so that waiting threads go on.
    post([state, ticket] {
      const std::lock_guard lock(state->mutex);
      state->done = std::max(state->done, ticket);
      state->at_ns = now_ns();
      state->reached.notify_all();
    });
    return {};
  }
  Status wait(const DeviceEvent& event) override {
    HEDDLE_RETURN_IF_ERROR(no_capture("wait for an event"));
    if (event.family() != kHostFamily) return event.synchronize();
    auto state = static_cast<const HostEvent&>(event).state();
    const uint64_t ticket = state->ticket();
    post([state, ticket] { state->wait_for(ticket); });
    return {};
  }
  Status copy(CopyKind, std::byte* to, const std::byte* from, int64_t bytes) override {
    return compute([=]() -> Status {
      if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
      return {};
    });
  }
  Status copy_peer(std::byte* to, const StreamRuntime&, const std::byte* from, int64_t bytes) override {
    return copy(CopyKind::kDeviceToDevice, to, from, bytes);
  }
  Status compute(Work work) override {
    if (capture_) {
      capture_->works.push_back(std::move(work));
      return {};
    }
    post([device = device_, work = std::move(work)] {
      if (device->failed.load(std::memory_order_acquire)) return;
      Status status = run_guarded(work);
      if (!status.ok()) device->fail(std::move(status).error());
    });
    return {};
  }
  Status begin_capture() override {
    HEDDLE_RETURN_IF_ERROR(no_capture("begin another capture"));
    capture_ = std::make_unique<HostGraph>();
    return {};
  }
  Result<std::unique_ptr<DeviceGraph>> end_capture() override {
    if (!capture_) return internal_error("a capture is ended that was not begun");
    return std::unique_ptr<DeviceGraph>(std::move(capture_));
  }
  Status launch(DeviceGraph& graph) override {
    HEDDLE_RETURN_IF_ERROR(no_capture("launch a graph"));
    for (const Work& work : static_cast<HostGraph&>(graph).works) HEDDLE_RETURN_IF_ERROR(compute(work));
    return {};
  }
  Status synchronize() override {
    HEDDLE_RETURN_IF_ERROR(no_capture("synchronise"));
    HostEvent end(device_);
    HEDDLE_RETURN_IF_ERROR(record(end));
    return end.synchronize();
  }

 private:
  Status no_capture(const char* what) const {
    if (!capture_) return {};
    return internal_error(std::string("a stream cannot ") + what + " while it captures a graph");
  }
  void post(std::function<void()> work) {
    device_->under_way.fetch_add(1, std::memory_order_acq_rel);
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_one();
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return quit_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // release what it holds before others are notified
      if (device_->under_way.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const std::lock_guard device_lock(device_->mutex);
        device_->idle.notify_all();
      }
      lock.lock();
    }
  }

  std::shared_ptr<HostDeviceState> device_;
  std::unique_ptr<HostGraph> capture_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool quit_ = false;
  std::thread thread_;  // last: it uses the other members
};

class HostRuntime final : public StreamRuntime {
 public:
  explicit HostRuntime(HostRuntimeOptions options)
      : peers_(options.peers), state_(std::make_shared<HostDeviceState>()) {
    properties_ = {.family = std::string(kHostFamily),
                   .name = std::move(options.name),
                   .index = 0,
                   .memory_bytes = options.memory_bytes,
                   .mapped_memory = options.mapped};
  }
  const StreamRuntimeProperties& properties() const override { return properties_; }
  Result<std::unique_ptr<DeviceStream>> make_stream() override {
    return std::unique_ptr<DeviceStream>(std::make_unique<HostStream>(state_));
  }
  Result<std::unique_ptr<DeviceEvent>> make_event() override {
    return std::unique_ptr<DeviceEvent>(std::make_unique<HostEvent>(state_));
  }
  Result<std::shared_ptr<std::byte[]>> allocate(int64_t bytes) override {
    const int64_t limit = properties_.memory_bytes;
    const int64_t used = state_->used_bytes.fetch_add(bytes, std::memory_order_acq_rel);
    auto memory = limit > 0 && used + bytes > limit ? nullptr : aligned(bytes);
    if (!memory) {
      state_->used_bytes.fetch_sub(bytes, std::memory_order_acq_rel);
      return infeasible("device '" + properties_.name + "' has no " + format_bytes(bytes) +
                        " of memory left: " + format_bytes(used) + " of " + format_bytes(limit) +
                        " are taken");
    }
    // The memory counts as used until its last holder releases it.
    std::byte* address = memory.get();
    return std::shared_ptr<std::byte[]>(address, [memory, state = state_, bytes](std::byte*) {
      state->used_bytes.fetch_sub(bytes, std::memory_order_acq_rel);
    });
  }
  Result<std::shared_ptr<std::byte[]>> allocate_pinned(int64_t bytes) override {
    auto memory = aligned(bytes);
    if (!memory) return infeasible("the host has no " + format_bytes(bytes) + " of memory");
    return memory;
  }
  Result<std::byte*> mapped_address(std::byte* pinned) const override {
    if (properties_.mapped_memory) return pinned;
    return unsupported("device '" + properties_.name + "' cannot read host memory in place");
  }
  bool reaches(const StreamRuntime& other) const override {
    return peers_ && other.properties().family == kHostFamily;
  }
  Result<double> elapsed_us(const DeviceEvent& from, const DeviceEvent& to) const override {
    return static_cast<double>(*host_ns(to) - *host_ns(from)) / 1000;
  }
  std::optional<int64_t> host_ns(const DeviceEvent& event) const override {
    const auto& state = static_cast<const HostEvent&>(event).state();
    const std::lock_guard lock(state->mutex);
    return state->at_ns;
  }
  Status drain() override {
    std::unique_lock lock(state_->mutex);
    state_->idle.wait(lock, [&] { return state_->under_way.load(std::memory_order_acquire) == 0; });
    state_->failed.store(false, std::memory_order_release);
    const auto error = std::exchange(state_->error, std::nullopt);
    state_->faults += error ? 1 : 0;
    return error ? Status(*error) : Status();
  }
  uint64_t faults() const override {
    const std::lock_guard lock(state_->mutex);
    return state_->faults;
  }

 private:
  static std::shared_ptr<std::byte[]> aligned(int64_t bytes) {
    auto memory = allocate_aligned(bytes + kDeviceAlignment);
    if (!memory) return nullptr;
    void* start = memory.get();
    size_t space = static_cast<size_t>(bytes + kDeviceAlignment);
    std::align(static_cast<size_t>(kDeviceAlignment), static_cast<size_t>(bytes), start, space);
    return {memory, static_cast<std::byte*>(start)};
  }

  StreamRuntimeProperties properties_;
  bool peers_;
  std::shared_ptr<HostDeviceState> state_;
};

}  // namespace

std::shared_ptr<StreamRuntime> make_host_runtime(HostRuntimeOptions options) {
  return std::make_shared<HostRuntime>(std::move(options));
}

}  // namespace heddle
