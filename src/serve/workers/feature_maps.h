// Feature maps between workers. A timed device computes nothing: its map is a pattern that depends on the batch
// and is checked on arrival, and only the digests of the rows' inputs are kept. The map of a part that really
// computes is kept and sent as it is.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/base/sync.h"
#include "heddle/fleet/data_plane_time.h"
#include "heddle/serve/worker_security.h"
#include "machine/part_rows.h"
#include "worker.pb.h"
#include "worker_network.h"

namespace heddle {

struct FeatureMap {
  uint64_t bytes = 0;
  std::vector<uint64_t> digests;                // [row] of a timed device's
  std::shared_ptr<const MapSections> sections;  // of a part's that was computed; else null
  uint32_t rows = 0;                            // of these
};
FeatureMap computed_map(MapSections sections, uint32_t rows);

inline constexpr size_t kFeatureChunkBytes = size_t{1} << 20;
// Of a batch's map that was computed, and of all those that a worker keeps.
inline constexpr uint64_t kMostMapBytes = uint64_t{1} << 30;
inline constexpr uint64_t kMostKeptMapBytes = uint64_t{2} << 30;

// The pattern's bytes from `offset` on, which is a multiple of 8.
void fill_feature_bytes(uint64_t batch, uint64_t offset, std::string& out);
bool are_feature_bytes(uint64_t batch, uint64_t offset, const std::string& bytes);

// Receives a map as a stream of chunks. The first chunk describes the whole map; every chunk is checked.
class FeatureIntake {
 public:
  // False: the chunk does not fit the description, or the map is too large. Then no further chunk may follow.
  bool take(const worker::FeatureChunk& chunk);
  bool complete() const { return announced_ && received_ == map_.bytes; }
  uint64_t batch() const { return batch_; }
  uint32_t device() const { return device_; }
  uint64_t bytes() const { return received_; }
  FeatureMap map();  // once complete

 private:
  bool announce(const worker::FeatureChunk& chunk);
  bool append(std::string_view data);

  bool announced_ = false;
  uint64_t batch_ = 0, received_ = 0;
  uint32_t device_ = 0;
  FeatureMap map_;
  bool computed_ = false;
  MapSections sections_;
  std::vector<uint64_t> section_bytes_;
  size_t section_ = 0;  // that is being filled
};

// The maps that a worker holds, by batch and device. A map is kept after it was sent, in case the receiver is
// lost, until the server releases it. Nobody asks for maps of abandoned batches: beyond `limit` maps or
// kMostKeptMapBytes the oldest are dropped, and all that are older than `keep`, which exceeds every wait between
// two parts.
class FeatureMaps {
 public:
  explicit FeatureMaps(size_t limit = 1 << 16, TimeNs keep = 300 * kNsPerSecond)
      : limit_(limit), keep_(keep) {}
  // `made`: by a run of this worker. Others have come for a run.
  void put(uint64_t batch, uint32_t device, FeatureMap map, bool made = false);
  std::optional<FeatureMap> get(uint64_t batch, uint32_t device) const;
  std::optional<FeatureMap> take(uint64_t batch, uint32_t device);
  void release(uint64_t batch, uint32_t device);
  void clear();
  size_t size() const;
  bool has_made() const;  // O(maps)

 private:
  struct Kept {
    FeatureMap map;
    TimeNs since = 0;
    bool made = false;
  };
  const size_t limit_;
  const TimeNs keep_;
  mutable Mutex mutex_;
  using Maps = std::map<std::pair<uint64_t, uint32_t>, Kept>;
  void erase(Maps::iterator it);
  static uint64_t held_bytes(const FeatureMap& map) { return map.sections ? map.bytes : 0; }

  Maps maps_;  // later batches have greater names
  uint64_t bytes_ = 0;
};

// Sends maps to other workers: one after the other to the same worker, in parallel to different ones. Each of at most
// `most_receivers` has a thread; where there are more, one that has nothing to do gives way.
class FeatureSender {
 public:
  using OnSent = std::function<void(const Status&)>;  // once the receiver has it all

  explicit FeatureSender(WorkerNetwork& network, const WorkerSecurity& security = {},
                         size_t most_receivers = 1024);
  ~FeatureSender();  // what is under way is cancelled
  FeatureSender(const FeatureSender&) = delete;
  FeatureSender& operator=(const FeatureSender&) = delete;

  struct Parcel {
    uint64_t batch = 0, generation = 0;
    uint32_t device = 0;
    FeatureMap map;
    double patience_s = 1;  // until it must have arrived, with the wait for earlier parcels
    TimeNs until = 0;       // set by send() from patience_s
    OnSent sent;
  };
  void send(const std::string& address, Parcel parcel);
  void forget_all();  // waiting parcels are not sent
  // What has been sent to each of the others so far.
  std::vector<worker::Link> links() const;

 private:
  struct Peer;
  WorkerNetwork& network_;
  const WorkerSecurity security_;
  const size_t most_receivers_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Peer>> peers_;
};

}  // namespace heddle
