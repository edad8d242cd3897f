// The dispatcher's search for paths. It changes no reservation.
#include <algorithm>
#include <utility>

#include "heddle/fleet/dispatch.h"

namespace heddle {

// The device of the first pool that can begin first, before `limit`. `avoid` skips straggling devices.
inline bool Dispatcher::first_hop(const Pool& pool, TimeNs t, TimeNs run, TimeNs limit, bool avoid,
                                  ProbedPath& path) const {
  if (!avoid) {
    const FreeSlot slot = book_.first_free(pool.group, t, run, limit);
    path.device[0] = slot.resource;
    path.start[0] = slot.start;
    return slot.resource != kNoId;
  }
  uint32_t best = kNoId;
  for (uint32_t d = pool.first_device; d < pool.end; ++d) {
    if (straggles_[d]) continue;
    const TimeNs start = book_.earliest(d, t, run);
    if (start >= limit) continue;
    limit = start;
    best = d;
    if (start == t) break;  // no device can be earlier
  }
  path.device[0] = best;
  path.start[0] = limit;
  return best != kNoId;
}

// Instead of the path's first device another one, if the batch could leave it sooner for the next pool.
void Dispatcher::prefer_free_link(const Pool& pool, TimeNs t, const StepTimes* times, TimeNs limit,
                                  ProbedPath& path) const {
  const TimeNs run = times[0].run, send = times[1].send;
  const TimeNs done = path.start[0] + run;
  TimeNs leaves = book_.earliest(uplink(path.device[0]), done, send);
  for (uint32_t d = pool.first_device; d < pool.end && leaves > done; ++d) {
    if (book_.not_before(d, t, run) + run >= leaves) continue;
    const TimeNs begins = book_.earliest(d, t, run);
    if (begins >= limit) continue;
    const TimeNs sent = book_.earliest(uplink(d), begins + run, send);
    if (sent >= leaves) continue;
    leaves = sent;
    path.device[0] = d;
    path.start[0] = begins;
  }
}

// The same for the pool of a later partition k. The device of partition k - 1 holds the batch from t on.
inline bool Dispatcher::next_hop(uint32_t k, const Pool& pool, TimeNs t, StepTimes times, TimeNs limit,
                                 bool avoid, ProbedPath& path) const {
  const size_t step = size_t{2} * k;
  const ResourceId up = uplink(path.device[k - 1]);
  const TimeNs up_free = book_.earliest(up, t, times.send);
  const TimeNs arrived = up_free + times.send;  // no run here starts before this
  const auto sent_to = [&](uint32_t device) {
    const ResourceId down = downlink(device);
    const TimeNs sent = book_.earliest(down, up_free, times.send);
    return sent == up_free ? sent : book_.earliest_both(up, down, sent, times.send);
  };
  uint32_t best = kNoId;
  TimeNs start = limit - 1;  // upper bound; on ties the lower number wins
  ResourceId last_down = kNoId;
  TimeNs last_sent = 0;
  if (!avoid && !spread_) {
    const FreeSlot slot = book_.first_free(pool.group, arrived, times.run, limit);
    if (slot.resource == kNoId) return false;
    const TimeNs sent = sent_to(slot.resource);
    const TimeNs begins =
        sent == up_free ? slot.start : book_.earliest(slot.resource, sent + times.send, times.run);
    if (begins < limit) {
      path.device[k] = best = slot.resource;
      path.start[step - 1] = sent;
      path.start[step] = start = begins;
      if (begins == slot.start) return true;  // the links do not delay it: none can be earlier
    }
    last_down = downlink(slot.resource);
    last_sent = sent;
  }
  for (uint32_t d = pool.first_device; d < pool.end; ++d) {
    // A lower bound rules out most devices before their links are searched.
    const TimeNs bound = book_.not_before(d, arrived, times.run);
    if (bound > start || (bound == start && !spread_ && d > best) || (avoid && straggles_[d])) continue;
    // Devices of a server share its downlink.
    if (const ResourceId down = downlink(d); down != last_down) {
      last_down = down;
      last_sent = sent_to(d);
    }
    const TimeNs begins = book_.earliest(d, last_sent + times.send, times.run);
    if (begins > start) continue;
    if (begins == start && best != kNoId && (spread_ ? book_.tail(d) >= book_.tail(best) : d >= best))
      continue;
    path.device[k] = best = d;
    path.start[step - 1] = last_sent;
    path.start[step] = start = begins;
    if (start == arrived && !spread_) break;
  }
  return best != kNoId;
}

// Algorithm 2, lines 6 to 25, for the partitions from `partition` on. The path already has the device before
// them, which holds the batch from time t on. The search ends, without a path, as soon as the path waits
// longer than `most_wait`.
bool Dispatcher::probe_from(uint32_t pipeline, uint32_t batch, uint32_t partition, TimeNs t, TimeNs most_wait,
                            ProbedPath& path) const {
  const Route& route = routes_[pipeline];
  const StepTimes* times = times_of(route, batch);
  TimeNs wait = 0;
  for (uint32_t k = partition; k < route.partitions; ++k) {
    const Pool& pool = pools_[route.first_pool + k];
    const size_t step = size_t{2} * k;
    const TimeNs ready = t + times[k].send;  // the earliest start of the run if nothing else were booked
    const TimeNs latest = std::min(kNever, ready + most_wait - wait + 1);
    bool found = false;
    // Stragglers are left out first, without a limit on the start: lateness alone is no reason to use one.
    for (bool avoid = straggling_ > 0;; avoid = false) {
      const TimeNs limit = avoid ? kNever : latest;
      found = k == 0 ? first_hop(pool, t, times[k].run, limit, avoid, path)
                     : next_hop(k, pool, t, times[k], limit, avoid, path);
      if (found || !avoid) break;  // otherwise all open devices straggle
    }
    if (found && k == 0 && route.partitions > 1 && options_.free_links && straggling_ == 0)
      prefer_free_link(pool, t, times, latest, path);
    if (found) wait += path.start[step] - ready;
    if (!found || wait > most_wait) {
      path.finish = path.wait = kNever;
      return false;
    }
    t = path.start[step] + times[k].run;
  }
  path.finish = t;
  path.wait = wait;
  return true;
}

ProbedPath Dispatcher::probe(uint32_t pipeline, uint32_t batch, TimeNs now) const {
  ProbedPath path;
  probe_from(pipeline, batch, 0, now, kNever, path);
  return path;
}

// Algorithm 1, lines 4 to 20. If true, `pipeline` and `size` are the pipeline and the largest batch that ends
// by `deadline`, and path_ is its path.
bool Dispatcher::choose(uint32_t model, TimeNs deadline, TimeNs now, uint32_t& pipeline, uint32_t& size) {
  const auto& pipelines = deployment_.models[model].pipelines;
  const TimeNs left = deadline - now;
  bool found = false;
  others_.clear();
  counters_.probes += pipelines.size();
  const uint32_t only = options_.least_wait ? kNoId : turns_.next(model, [](uint32_t) { return true; });
  const auto wait_of = [&](const ProbedPath& path) {
    return options_.look_ahead ? path.wait : path.start[0] - now;
  };
  const auto probe_within = [&](uint32_t p, uint32_t b, TimeNs most_wait, ProbedPath& path) {
    return most_wait >= 0 && probe_from(p, b, 0, now, options_.look_ahead ? most_wait : kNever, path) &&
           wait_of(path) <= most_wait;
  };
  for (const uint32_t p : pipelines) {
    if (only != kNoId && p != only) continue;
    const Route& route = routes_[p];
    const TimeNs slack = left - sums_[route.first_sum + route.batch - 1];  // the longest wait in time
    // After the first hit, only shorter waits are of interest. A late path is of interest only if a smaller
    // batch could be tried.
    const TimeNs most_wait = found ? std::min(slack, wait_of(*path_) - 1) : route.batch > 1 ? kNever : slack;
    if (!probe_within(p, route.batch, most_wait, *spare_)) continue;
    if (const TimeNs wait = wait_of(*spare_); wait > slack) {
      auto place = others_.end();  // sorted by wait; equal waits keep their order
      while (place != others_.begin() && place[-1].first > wait) --place;
      others_.emplace(place, wait, p);
      continue;
    }
    found = true;
    pipeline = p;
    size = route.batch;
    std::swap(path_, spare_);
  }
  if (found) return true;
  for (const auto& [wait, p] : others_) {
    const Route& route = routes_[p];
    for (uint32_t b = route.batch; --b > 0;) {
      ++counters_.probes;
      const TimeNs slack = left - sums_[route.first_sum + b - 1];
      if (!probe_within(p, b, slack, *path_)) continue;
      pipeline = p;
      size = b;
      return true;
    }
  }
  return false;
}

}  // namespace heddle
