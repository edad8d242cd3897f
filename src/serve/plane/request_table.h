// Maps the scheduler's request numbers to requests, links the requests of a batch, and counts outcomes.
//
// A request may be settled before the scheduler lets go of its number; the number then stands for nobody
// until release().
#pragma once

#include <vector>

#include "heddle/fleet/reservation.h"
#include "heddle/fleet/scheduler.h"
#include "heddle/serve/live_plane.h"

namespace heddle {

class RequestTable {
 public:
  using Settled = std::vector<LiveRequest*>;

  explicit RequestTable(std::vector<LiveModelCounters>& models) : models_(models) {}

  RequestId add(LiveRequest& request) {
    RequestId id;
    if (free_.empty()) {
      id = static_cast<RequestId>(entries_.size());
      entries_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    auto& entry = entries_[id];
    entry.request = &request;
    entry.next_begun = kNoId;
    entry.batch = 0;
    entry.map_at = kNoId;
    ++entry.serial;
    ++open_;
    if (auto* m = counters_of(request)) {
      ++m->in_plane;
      ++m->queued;
    }
    return id;
  }

  size_t open() const { return open_; }
  // Null: it was settled before.
  LiveRequest* at(RequestId id) const { return entries_[id].request; }
  // Of this use of the number.
  uint32_t serial(RequestId id) const { return entries_[id].serial; }
  // The name of the batch that begins with this request.
  uint64_t& batch(RequestId first) { return entries_[first].batch; }
  // Its feature map, which stays where a run has left it until the next part has run.
  void set_map(RequestId first, uint32_t device) { entries_[first].map_at = device; }
  // (batch, device) of the map, which is no longer needed, into `released`. Nothing if there is none.
  void take_map(RequestId first, std::vector<std::pair<uint64_t, uint32_t>>& released) {
    Entry& entry = entries_[first];
    if (entry.map_at != kNoId) released.emplace_back(entry.batch, entry.map_at);
    entry.map_at = kNoId;
  }
  // Those of batches that its requests were in before.
  void take_maps(RequestId first, uint32_t size, std::vector<std::pair<uint64_t, uint32_t>>& released) {
    RequestId id = first;
    for (uint32_t i = 0; i < size && id != kNoId; ++i, id = entries_[id].next_begun) take_map(id, released);
  }

  void begin(RequestId id, TimeNs now) {
    if (LiveRequest* r = entries_[id].request) {
      if (r->begun == 0) {  // else of a batch that was recalled: counted before
        auto& m = models_[r->model];
        --m.queued;
        m.queueing.add(now - r->arrived);
      }
      r->begun = now;
    }
    if (last_begun_ != kNoId) entries_[last_begun_].next_begun = id;
    entries_[id].next_begun = kNoId;
    last_begun_ = id;
  }

  // Calls `each` with the requests of a batch in order, null for those settled before.
  template <class Each>
  void each_of(RequestId first, uint32_t size, const Each& each) const {
    RequestId id = first;
    for (uint32_t i = 0; i < size && id != kNoId; ++i) {
      const RequestId next = entries_[id].next_begun;
      each(entries_[id].request);
      id = next;
    }
  }

  // Takes the request out unsettled; null where it was settled before.
  LiveRequest* release(RequestId id) {
    LiveRequest* const r = entries_[id].request;
    if (r != nullptr) leave(*r);
    if (last_begun_ == id) last_begun_ = kNoId;
    entries_[id].request = nullptr;
    free_.push_back(id);
    return r;
  }

  void settle(RequestId id, Outcome outcome, TimeNs now, Settled& settled) {
    if (LiveRequest* r = release(id)) set_outcome(*r, outcome, now, settled);
  }

  // The scheduler keeps the number.
  void settle_early(RequestId id, Outcome outcome, TimeNs now, Settled& settled) {
    LiveRequest* const r = entries_[id].request;
    leave(*r);
    entries_[id].request = nullptr;
    set_outcome(*r, outcome, now, settled);
  }

  // Those that are not settled.
  std::vector<RequestId> all() const {
    std::vector<RequestId> ids;
    for (RequestId id = 0; id < entries_.size(); ++id)
      if (entries_[id].request != nullptr) ids.push_back(id);
    return ids;
  }

 private:
  struct Entry {
    LiveRequest* request = nullptr;
    RequestId next_begun = kNoId;  // in the order in which requests began: those of a batch stand together
    uint32_t serial = 0;
    uint64_t batch = 0;
    uint32_t map_at = kNoId;
  };

  LiveModelCounters* counters_of(const LiveRequest& r) {
    return r.model < models_.size() ? &models_[r.model] : nullptr;
  }

  void leave(const LiveRequest& r) {
    if (auto* m = counters_of(r)) {
      --m->in_plane;
      if (r.begun == 0) --m->queued;
    }
    --open_;
  }

  void set_outcome(LiveRequest& r, Outcome outcome, TimeNs now, Settled& settled) {
    r.finished = now;
    r.outcome = outcome;
    if (auto* m = counters_of(r)) {
      ++m->outcomes[static_cast<size_t>(outcome)];
      if (outcome == Outcome::kInTime || outcome == Outcome::kLate) m->latency.add(now - r.arrived);
    }
    settled.push_back(&r);
  }

  std::vector<LiveModelCounters>& models_;
  std::vector<Entry> entries_;
  std::vector<RequestId> free_;
  RequestId last_begun_ = kNoId;
  size_t open_ = 0;
};

}  // namespace heddle
