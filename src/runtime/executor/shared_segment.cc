#include "shared_segment.h"

#include <map>
#include <tuple>

namespace heddle {
namespace {

class SegmentShare final : public CompiledSegment {
 public:
  SegmentShare(std::shared_ptr<CompiledSegment> segment, int first_slot)
      : segment_(std::move(segment)), first_slot_(first_slot) {}
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    return segment_->bind(first_slot_ + slot, inputs, outputs);
  }
  Status run(int slot) override { return segment_->run(first_slot_ + slot); }
  SegmentOrigin origin() const override { return segment_->origin(); }

 private:
  std::shared_ptr<CompiledSegment> segment_;
  int first_slot_;
};

}  // namespace

std::vector<int32_t> segments_to_share(const Problem& problem, const Plan& plan, const Seats& seats,
                                       const std::vector<bool>& eligible) {
  std::vector<int32_t> first(plan.segments.size());
  using Kind =
      std::tuple<int32_t, std::string, std::string, std::string, Precision, size_t, std::vector<OpId>>;
  std::map<Kind, int32_t> found;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    first[s] = static_cast<int32_t>(s);
    const Segment& segment = plan.segments[s];
    if (!eligible[s] || seats.seats[static_cast<size_t>(seats.of_segment[s])].of > 1) continue;
    const Device& device = problem.cluster->device(segment.device);
    Kind kind{device.host.value, device.device_class, device.backend, device.backend_device,
              device.precision,  device.cores.size(), segment.ops};
    first[s] = found.emplace(std::move(kind), first[s]).first->second;
  }
  return first;
}

std::unique_ptr<CompiledSegment> share_of_segment(std::shared_ptr<CompiledSegment> segment, int first_slot) {
  return std::make_unique<SegmentShare>(std::move(segment), first_slot);
}

}  // namespace heddle
