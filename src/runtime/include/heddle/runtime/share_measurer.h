// Measuring segments on shares of a device: a virtual device of 1/v of its cores, while the other shares are
// busy with the same work (as PPipe's public measurements define it).
#pragma once

#include <memory>

#include "heddle/runtime/openvino_measurer.h"
#include "heddle/runtime/profiler.h"

namespace heddle {

// The device with part `index` of `of` of its cores: with c cores those from index c / of up to
// (index + 1) c / of in ascending order, at least one. A device without cores stays as it is.
Device device_part(const Device& device, int index, int of);

// Measures a segment on each of `share` parts of the device's cores at once, with a start in common: a
// measurement is the time from there to the end of the last, us, so that no share is promised more than the
// slowest one gives. Supports devices with at least `share` cores; share 1 is the whole device, alone. Not
// thread-safe; share >= 1.
std::unique_ptr<SegmentMeasurer> make_share_measurer(std::shared_ptr<const Model> model, int share,
                                                     const MeasureOptions& options = {});

// As measure_at_once(): the times from the common start to the last end. Cancelled before the first: an
// error.
Result<Measurement> time_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                                 int least_runs, const Deadline& deadline);

// profile() with a measurer of shares 1/`share`; what the store holds of other shares does not count.
Result<ProfileSummary> profile_share(const Graph& graph, const Cluster& cluster,
                                     std::span<const ProfileRequest> requests, const SignatureFn& signature,
                                     int share, SegmentMeasurer& measurer, ProfileStore& store,
                                     const ProfileOptions& options = {});

}  // namespace heddle
