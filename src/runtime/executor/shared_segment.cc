#include "shared_segment.h"

#include <map>
#include <tuple>

#include "heddle/base/log.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/units.h"

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

SegmentGroups::SegmentGroups(const Problem& problem, const Plan& plan, const Seats& seats,
                             const std::vector<std::shared_ptr<const Graph>>& graphs,
                             const std::vector<bool>& may_share, const std::vector<int>& lane_slots) {
  using Kind = std::tuple<int32_t, std::string, std::string, std::string, Precision, size_t,
                          std::vector<OpId>, const Graph*>;
  std::map<Kind, size_t> found;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    size_t group = groups_.size();
    if (may_share[s] && seats.seats[static_cast<size_t>(seats.of_segment[s])].of == 1) {
      const Device& device = problem.cluster->device(segment.device);
      Kind kind{device.host.value, device.device_class,
                device.backend,    device.backend_device,
                device.precision,  device.cores.size(),
                segment.ops,       graphs[static_cast<size_t>(segment.lane)].get()};
      group = found.emplace(std::move(kind), group).first->second;
    }
    if (group == groups_.size()) groups_.emplace_back();
    group_of_.push_back(group);
    slots_.push_back(lane_slots[static_cast<size_t>(segment.lane)]);
    groups_[group].devices.insert(segment.device.value);
    groups_[group].slots += slots_.back();
  }
}

Result<std::shared_ptr<CompiledSegment>> SegmentGroups::compiled(size_t segment, RuntimeDevice& device,
                                                                 const std::function<SegmentSpec()>& spec) {
  Group& group = groups_[group_of_[segment]];
  if (!group.compiled) {
    SegmentSpec own = spec();
    own.callers = static_cast<int>(group.devices.size());
    const Stopwatch watch;
    HEDDLE_ASSIGN_OR_RETURN(group.compiled, device.compile(own, group.slots));
    log_debug([&] { return "segment '" + own.name + "' compiled in " + format_us(1e6 * watch.seconds()); });
  }
  if (slots_[segment] == group.slots) return group.compiled;
  const int first_slot = group.given;
  group.given += slots_[segment];
  return std::shared_ptr<CompiledSegment>(std::make_shared<SegmentShare>(group.compiled, first_slot));
}

}  // namespace heddle
