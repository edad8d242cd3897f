// HashBackend's segments on accelerators that the host's stream runtime emulates.
#include <cstring>

#include "heddle/base/hash.h"
#include "heddle/runtime/stream_runtime.h"
#include "support.h"

namespace heddle::test {
namespace {

constexpr int64_t kParameterBytes = 64;

uint64_t parameters_of(const std::string& segment) { return Hasher().text(segment).value(); }

class AcceleratedSegment final : public CompiledSegment {
 public:
  AcceleratedSegment(AcceleratedBackend& backend, const SegmentSpec& spec,
                     std::unique_ptr<CompiledSegment> inner, DeviceStream& stream,
                     std::shared_ptr<std::byte[]> pinned)
      : backend_(backend),
        name_(spec.name),
        host_access_(spec.host_access),
        inner_(std::move(inner)),
        stream_(stream),
        pinned_(std::move(pinned)) {
    const uint64_t value = parameters_of(name_);
    std::memcpy(pinned_.get(), &value, sizeof value);
  }
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    for (const auto& list : {inputs, outputs}) {
      for (const TensorView& view : list) {
        if (reinterpret_cast<uintptr_t>(view.data) % kDeviceAlignment != 0)
          return Error(Code::kInternal, "a tensor of '" + name_ + "' is not aligned as a device's memory is");
      }
    }
    return inner_->bind(slot, inputs, outputs);
  }
  Status run(int slot) override {
    return stream_.compute([this, slot]() -> Status {
      if (host_access_) backend_.in_place.fetch_add(1);
      uint64_t value = 0;
      if (placed_ != nullptr) std::memcpy(&value, placed_, sizeof value);
      if (value != parameters_of(name_))
        return Error(Code::kInternal, "the parameters of '" + name_ + "' are not there");
      return inner_->run(slot);
    });
  }
  std::span<std::byte> host_parameters() override {
    return {pinned_.get(), pinned_ ? static_cast<size_t>(kParameterBytes) : 0};
  }
  Status place_parameters(std::byte* address) override {
    if ((address == pinned_.get()) != host_access_)
      return Error(Code::kInternal, "the parameters of '" + name_ + "' are in the wrong memory");
    placed_ = address;
    return {};
  }
  void drop_host_parameters() override { pinned_.reset(); }

 private:
  AcceleratedBackend& backend_;
  std::string name_;
  bool host_access_;
  std::unique_ptr<CompiledSegment> inner_;
  DeviceStream& stream_;
  std::shared_ptr<std::byte[]> pinned_;
  std::byte* placed_ = nullptr;
};

class AcceleratedDevice final : public RuntimeDevice {
 public:
  AcceleratedDevice(AcceleratedBackend& backend, std::unique_ptr<RuntimeDevice> inner, const Device& device)
      : backend_(backend),
        inner_(std::move(inner)),
        runtime_(make_host_runtime({.name = device.name,
                                    .memory_bytes = backend.memory_bytes,
                                    .peers = backend.peers,
                                    .mapped = backend.mapped})),
        stream_(runtime_->make_stream().value()) {}
  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    HEDDLE_ASSIGN_OR_RETURN(auto inner, inner_->compile(spec, slots));
    HEDDLE_ASSIGN_OR_RETURN(auto pinned, runtime_->allocate_pinned(kParameterBytes));
    return std::unique_ptr<CompiledSegment>(
        std::make_unique<AcceleratedSegment>(backend_, spec, std::move(inner), *stream_, std::move(pinned)));
  }
  StreamRuntime* stream_runtime() const override { return runtime_.get(); }
  DeviceStream* execution_stream() const override { return stream_.get(); }

 private:
  AcceleratedBackend& backend_;
  std::unique_ptr<RuntimeDevice> inner_;
  std::shared_ptr<StreamRuntime> runtime_;
  std::unique_ptr<DeviceStream> stream_;
};

}  // namespace

std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> AcceleratedBackend::opener() {
  return [this](const Device& device) -> Result<std::unique_ptr<RuntimeDevice>> {
    HEDDLE_ASSIGN_OR_RETURN(auto inner, hash.opener()(device));
    if (device.kind == DeviceKind::kCpu) return inner;
    return std::unique_ptr<RuntimeDevice>(
        std::make_unique<AcceleratedDevice>(*this, std::move(inner), device));
  };
}

}  // namespace heddle::test
