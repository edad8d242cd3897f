#include "heddle/runtime/share_measurer.h"

#include <algorithm>
#include <vector>

#include "executor/seats.h"
#include "streams/accelerator_name.h"

namespace heddle {
namespace {

class ShareMeasurer final : public SegmentMeasurer {
 public:
  ShareMeasurer(std::shared_ptr<const Model> model, int share, const MeasureOptions& options)
      : model_(model), share_(share), options_(options), whole_(make_openvino_measurer(model, options)) {}

  bool supports(const Device& device) const override {
    return whole_->supports(device) && share_ <= most_shares(device);
  }

  Result<Measurement> measure(std::span<const OpId> finest_ops, const Device& device,
                              const Deadline& deadline) override {
    if (share_ == 1) return whole_->measure(finest_ops, device, deadline);
    std::vector<std::unique_ptr<SegmentProbe>> probes;
    for (int i = 0; i < share_; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(probes.emplace_back(),
                              make_segment_probe(model_, finest_ops, device_part(device, i, share_)));
    }
    return time_at_once(probes, options_.min_s, options_.min_runs, deadline);
  }

 private:
  std::shared_ptr<const Model> model_;
  int share_;
  MeasureOptions options_;
  std::unique_ptr<SegmentMeasurer> whole_;
};

}  // namespace

int most_shares(const Device& device) {
  if (!device.cores.empty()) return static_cast<int>(device.cores.size());
  if (device.kind == DeviceKind::kCpu || device.backend != "torch") return 1;
  const auto name = parse_accelerator_name(device.backend_device);
  return name.ok() ? most_parts(*name) : 1;
}

Device device_part(const Device& device, int index, int of) {
  Device part = device;
  if (most_shares(device) < of) return part;
  if (device.cores.empty() && of > 1) {
    const auto name = parse_accelerator_name(device.backend_device);
    part.backend_device = accelerator_name(part_of(*name, index, of));
    part.memory_bytes /= of;
    return part;
  }
  std::sort(part.cores.begin(), part.cores.end());
  part.cores = part_of_cores(part.cores, index, of);
  return part;
}

std::unique_ptr<SegmentMeasurer> make_share_measurer(std::shared_ptr<const Model> model, int share,
                                                     const MeasureOptions& options) {
  return std::make_unique<ShareMeasurer>(std::move(model), share, options);
}

}  // namespace heddle
