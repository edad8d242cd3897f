// Emulates absent devices: a segment takes the plan's time, and nothing is computed.
//
// Copy this backend to write a new one: it has the three roles of backend.h and nothing else. The executor's
// clock does the waiting, because the time of an emulated device needs no thread.
#include <memory>

#include "heddle/runtime/backend.h"

namespace heddle {
namespace {

class EmulatedSegment final : public CompiledSegment {
 public:
  explicit EmulatedSegment(double cost_us) : cost_us_(cost_us) {}
  Status bind(int, std::span<const TensorView>, std::span<const TensorView>) override { return {}; }
  Status run(int) override { return {}; }
  std::optional<double> timed_us() const override { return cost_us_; }

 private:
  double cost_us_;
};

class EmulatedDevice final : public RuntimeDevice {
 public:
  explicit EmulatedDevice(DType border) : border_(border) {}
  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int) override {
    return std::unique_ptr<CompiledSegment>(std::make_unique<EmulatedSegment>(spec.cost_us));
  }
  bool moves_data() const override { return false; }
  DType border_type() const override { return border_; }

 private:
  DType border_;
};

class EmulatedBackend final : public Backend {
 public:
  std::string name() const override { return "emulated"; }
  std::string description() const override { return "takes the plan's times as real time; computes nothing"; }
  bool computes() const override { return false; }
  Result<std::vector<Precision>> precisions(const Device&) const override {
    return std::vector{Precision::kF32, Precision::kTf32, Precision::kBf16, Precision::kFp16};
  }
  DType border_type(const Device& device) const override {
    return device.precision == Precision::kBf16   ? DType::kBF16
           : device.precision == Precision::kFp16 ? DType::kF16
                                                  : DType::kF32;
  }
  Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) override {
    return std::unique_ptr<RuntimeDevice>(std::make_unique<EmulatedDevice>(border_type(device)));
  }
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend() { return std::make_unique<EmulatedBackend>(); }

}  // namespace heddle
