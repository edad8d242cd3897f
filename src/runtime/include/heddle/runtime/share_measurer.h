// Measures segments on a share of a device: 1/v of its cores or, on an accelerator of libtorch, of its
// multiprocessors. The other shares run the same work meanwhile (as in PPipe's public measurements).
#pragma once

#include <memory>

#include "heddle/runtime/openvino_measurer.h"
#include "heddle/runtime/profiler.h"

namespace heddle {

// The largest number of shares: the number of cores, or what the accelerator's name in its backend allows;
// otherwise 1.
int most_shares(const Device& device);

// The device reduced to part `index` of `of`. Of c cores in ascending order it keeps those from index c / of
// up to (index + 1) c / of. Of an accelerator it keeps the same share of its parts ("cuda:0/1-2/4",
// docs/torch.md) and memory. The device is unchanged if of > most_shares().
Device device_part(const Device& device, int index, int of);

// Measures a segment on all `share` parts of the device at once, with a common start. The time, in us, ends
// with the slowest part, so that no share is promised more than the slowest one delivers. Supports devices
// with at least that many shares; share 1 is the whole device, alone. Not thread-safe; share >= 1.
std::unique_ptr<SegmentMeasurer> make_share_measurer(std::shared_ptr<const Model> model, int share,
                                                     const MeasureOptions& options = {});

// Like measure_at_once(), but returns the individual times. Cancellation before the first one is an error.
Result<Measurement> time_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                                 int least_runs, const Deadline& deadline);

// profile() with a measurer for shares of 1/`share`; stored results for other shares do not count.
Result<ProfileSummary> profile_share(const Graph& graph, const Cluster& cluster,
                                     std::span<const ProfileRequest> requests, const SignatureFn& signature,
                                     int share, SegmentMeasurer& measurer, ProfileStore& store,
                                     const ProfileOptions& options = {});

}  // namespace heddle
