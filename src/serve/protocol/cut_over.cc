// Changes of what is served, and its end.
#include <algorithm>
#include <utility>

#include "heddle/serve/infer_service.h"
#include "infer_check.h"
#include "plane/fault.h"
#include "sessions.h"

namespace heddle {
namespace {

void withdraw(LiveRequest& r, const char* why) {
  r.outcome = Outcome::kWithdrawn;
  r.error = why;
  r.finished = live_now();
  r.settled();
}

}  // namespace

bool InferService::serve(std::unique_ptr<Generation> next) {
  const std::lock_guard serving(serving_);
  std::vector<LiveRequest*> pending;
  {
    const std::unique_lock lock(gate_);
    holding_ = current_ && current_->plane;
    if (holding_) pending = current_->plane->drain(true);
  }
  // Without the gate: health and status do not wait for the longest run.
  if (holding_) {
    fault_at(FaultPoint::kDrain);
    while (!stopping_ && !current_->plane->idle()) sleep_ns(200 * kNsPerUs);
  }
  std::unique_ptr<Generation> old;
  bool taken = false;
  {
    const std::unique_lock lock(gate_);
    taken = !stopping_;
    if (!taken) {  // what runs may still end
      for (auto* r : pending) withdraw(*r, "the server is stopping");
    } else {
      old = std::exchange(current_, std::move(next));
      take_over(old.get(), pending);
    }
  }
  begin_held();
  return taken;
}

void InferService::take_over(const Generation* old, std::span<LiveRequest* const> pending) {
  index_.clear();
  const auto old_places = std::exchange(places_, {});
  uint32_t place = 0;
  for (uint32_t m = 0; m < current_->models.size(); ++m) {
    index_[current_->models[m]->name] = m;
    places_.push_back(place);
    place += plane_models(*current_->models[m]);
  }
  for (auto* r : pending) {
    const auto after = std::upper_bound(old_places.begin(), old_places.end(), r->model) - old_places.begin();
    const ServedModel& was = *old->models[static_cast<size_t>(after - 1)];
    const uint32_t bucket = r->model - old_places[static_cast<size_t>(after - 1)];
    const auto it = index_.find(was.name);
    if (it == index_.end() || !same_rows(was, *current_->models[it->second])) {
      withdraw(*r, it == index_.end() ? "the model was unloaded" : "the model has other tensors now");
    } else {
      r->model = places_[it->second] + bucket;
      current_->plane->submit(*r);
    }
  }
  sessions_->retain(current_->models);
  if (started_ns_ == 0) started_ns_ = live_now();
  ++generations_;
}

// Newer ones are held until those before them have begun: requests of a session run in the order in which they came.
void InferService::begin_held() {
  for (;;) {
    std::vector<Held> held;
    {
      const std::lock_guard lock(held_mutex_);
      held.swap(held_);
      if (held.empty()) {
        holding_ = false;
        return;
      }
    }
    for (auto& [request, turn] : held) begin_in_turn(std::move(request), std::move(turn), true);
  }
}

void InferService::stop(double seconds) {
  stopping_ = true;
  sessions_->close();
  const std::lock_guard serving(serving_);
  const auto until = live_now() + ns_from_us(seconds * 1e6);
  std::unique_ptr<Generation> old;
  {
    const std::unique_lock lock(gate_);
    if (!current_) return;
    if (current_->plane) {
      current_->plane->drain(false);
      while (!current_->plane->idle() && live_now() < until) sleep_ns(1000 * kNsPerUs);
    }
    old = std::move(current_);
    index_.clear();
  }
}

}  // namespace heddle
