#include "timed_runtime.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace heddle::test {
namespace {

struct TimedEvent final : DeviceEvent {
  TimedEvent(std::shared_ptr<TimedMachine> m) : machine(std::move(m)) {}
  Status synchronize() const override {
    machine->now_us = std::max(machine->now_us, at_us);
    return {};
  }
  Result<bool> done() const override { return at_us <= machine->now_us; }
  std::string_view family() const override { return "timed"; }
  std::shared_ptr<TimedMachine> machine;
  double at_us = 0;
};

class TimedStream final : public DeviceStream {
 public:
  TimedStream(std::shared_ptr<TimedMachine> machine, std::string name, TimedCopies copies)
      : machine_(std::move(machine)), name_(std::move(name)), copies_(std::move(copies)) {}
  Status record(DeviceEvent& event) override {
    at_us_ = std::max(at_us_, machine_->now_us);
    static_cast<TimedEvent&>(event).at_us = at_us_;
    return {};
  }
  Status wait(const DeviceEvent& event) override {
    at_us_ = std::max(at_us_, static_cast<const TimedEvent&>(event).at_us);
    return {};
  }
  Status copy(CopyKind kind, std::byte* to, const std::byte* from, int64_t bytes) override {
    const bool in = kind == CopyKind::kHostToDevice;
    std::vector<std::string> held = {name_ + (in || copies_.half_duplex ? " <" : " >")};
    if (in && !copies_.bus.empty()) held.push_back(copies_.bus);
    return take(held, in ? copies_.to_device : copies_.to_host, to, from, bytes);
  }
  Status copy_peer(std::byte* to, const StreamRuntime& source, const std::byte* from,
                   int64_t bytes) override {
    return take({source.properties().name + " to " + name_}, copies_.peer, to, from, bytes);
  }
  Status compute(std::function<Status()> work) override { return work(); }
  Status begin_capture() override { return Error(Code::kUnsupported, "no graphs"); }
  Result<std::unique_ptr<DeviceGraph>> end_capture() override {
    return Error(Code::kUnsupported, "no graphs");
  }
  Status launch(DeviceGraph&) override { return Error(Code::kUnsupported, "no graphs"); }
  Status synchronize() override {
    machine_->now_us = std::max(machine_->now_us, at_us_);
    return {};
  }

 private:
  Status take(const std::vector<std::string>& held, double rate, std::byte* to, const std::byte* from,
              int64_t bytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    double start_us = std::max(at_us_, machine_->now_us);
    for (const std::string& name : held) start_us = std::max(start_us, machine_->free_us[name]);
    at_us_ = start_us + copies_.latency_us + static_cast<double>(bytes) / rate * 1e6;
    for (const std::string& name : held) machine_->free_us[name] = at_us_;
    return {};
  }

  std::shared_ptr<TimedMachine> machine_;
  std::string name_;
  TimedCopies copies_;
  double at_us_ = 0;
};

class TimedRuntime final : public StreamRuntime {
 public:
  TimedRuntime(std::shared_ptr<TimedMachine> machine, std::string name, const TimedCopies& copies)
      : machine_(std::move(machine)),
        copies_(copies),
        host_(make_host_runtime({.name = name, .memory_bytes = copies.memory_bytes})),
        properties_(host_->properties()) {
    properties_.family = "timed";
  }
  const StreamRuntimeProperties& properties() const override { return properties_; }
  Result<std::unique_ptr<DeviceStream>> make_stream() override {
    return std::unique_ptr<DeviceStream>(std::make_unique<TimedStream>(machine_, properties_.name, copies_));
  }
  Result<std::unique_ptr<DeviceEvent>> make_event() override {
    return std::unique_ptr<DeviceEvent>(std::make_unique<TimedEvent>(machine_));
  }
  Result<std::shared_ptr<std::byte[]>> allocate(int64_t bytes) override { return host_->allocate(bytes); }
  Result<std::shared_ptr<std::byte[]>> allocate_pinned(int64_t bytes) override {
    return host_->allocate_pinned(bytes);
  }
  Result<std::byte*> mapped_address(std::byte* pinned) const override {
    return host_->mapped_address(pinned);
  }
  bool reaches(const StreamRuntime& other) const override {
    return copies_.peers && other.properties().family == "timed";
  }
  Result<double> elapsed_us(const DeviceEvent& from, const DeviceEvent& to) const override {
    return static_cast<const TimedEvent&>(to).at_us - static_cast<const TimedEvent&>(from).at_us;
  }
  Status drain() override { return {}; }

 private:
  std::shared_ptr<TimedMachine> machine_;
  TimedCopies copies_;
  std::shared_ptr<StreamRuntime> host_;
  StreamRuntimeProperties properties_;
};

class TimedDevice final : public RuntimeDevice {
 public:
  explicit TimedDevice(std::shared_ptr<StreamRuntime> runtime)
      : runtime_(std::move(runtime)), stream_(runtime_->make_stream().value()) {}
  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec&, int) override {
    return Error(Code::kUnsupported, "copies only");
  }
  StreamRuntime* stream_runtime() const override { return runtime_.get(); }
  DeviceStream* execution_stream() const override { return stream_.get(); }

 private:
  std::shared_ptr<StreamRuntime> runtime_;
  std::unique_ptr<DeviceStream> stream_;
};

}  // namespace

std::shared_ptr<StreamRuntime> make_timed_runtime(std::shared_ptr<TimedMachine> machine, std::string name,
                                                  const TimedCopies& copies) {
  return std::make_shared<TimedRuntime>(std::move(machine), std::move(name), copies);
}

std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> timed_opener(
    std::map<std::string, TimedCopies> devices) {
  return [devices = std::move(devices), machine = std::make_shared<TimedMachine>()](
             const Device& device) -> Result<std::unique_ptr<RuntimeDevice>> {
    const auto it = devices.find(device.name);
    if (it == devices.end()) return Error(Code::kUnsupported, "it is not of this machine");
    return std::unique_ptr<RuntimeDevice>(
        std::make_unique<TimedDevice>(make_timed_runtime(machine, device.name, it->second)));
  };
}

}  // namespace heddle::test
