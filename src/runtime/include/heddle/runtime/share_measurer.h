// Measuring segments on shares of a device: a virtual device of 1/v of its cores or, on an accelerator of
// libtorch, of its multiprocessors, while the other shares are busy with the same work (as PPipe's public
// measurements define it).
#pragma once

#include <memory>

#include "heddle/runtime/openvino_measurer.h"
#include "heddle/runtime/profiler.h"

namespace heddle {

// Into how many shares it can be divided: its cores, or what its backend's name for an accelerator allows; 1
// where it has neither.
int most_shares(const Device& device);

// The device with part `index` of `of` of it. With c cores: those from index c / of up to (index + 1) c / of
// in ascending order. An accelerator: as many of its parts ("cuda:0/1-2/4", docs/torch.md), and memory. Stays
// as it is where of > most_shares().
Device device_part(const Device& device, int index, int of);

// Measures a segment on each of `share` parts of the device at once, with a start in common: a
// measurement is the time from there to the end of the last, us, so that no share is promised more than the
// slowest one gives. Supports devices of at least that many shares; share 1 is the whole device, alone. Not
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
