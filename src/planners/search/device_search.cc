#include "device_search.h"

namespace heddle {
namespace {

// Ops that change device together at most.
constexpr size_t kMostInGroup = 12;

}  // namespace

DeviceSearch::DeviceSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed)
    : flat_(flat), random_(seed), params_(flat, reserve), best_(std::move(start)), mark_(flat.num_ops(), 0) {}

void DeviceSearch::load_best() {
  for (uint32_t v = 0; v < now_.device.size(); ++v) params_.remove(v, now_.device[v]);
  now_ = best_;
  for (uint32_t v = 0; v < now_.device.size(); ++v) params_.add(v, now_.device[v]);
  now_excess_ = params_.excess();
}

bool DeviceSearch::change_device(uint32_t op, uint32_t device) {
  const uint32_t old = now_.device[op];
  if (device == old || !may_run(op, device)) return false;
  moved_.push_back({op, old});
  params_.remove(op, old);
  params_.add(op, device);
  now_.device[op] = device;
  moved(op);
  return true;
}

bool DeviceSearch::change_group(uint32_t op, uint32_t device) {
  const uint32_t from = now_.device[op];
  const size_t size = 2 + random_.below(kMostInGroup - 1);
  group_.assign(1, op);
  mark_[op] = ++stamp_;
  for (size_t i = 0; i < group_.size() && group_.size() < size; ++i) {
    const auto visit = [&](uint32_t w) {
      if (group_.size() >= size || mark_[w] == stamp_ || now_.device[w] != from) return;
      mark_[w] = stamp_;
      group_.push_back(w);
    };
    for (const uint32_t t : flat_.outputs(group_[i])) {
      const auto readers = flat_.readers(t);
      for (size_t r = 0; r < readers.size() && r < kMostInGroup; ++r) visit(readers[r]);
    }
    for (const uint32_t t : flat_.inputs(group_[i])) visit(flat_.producer(t));
  }
  bool any = false;
  for (const uint32_t v : group_) any = change_device(v, device) || any;
  return any;
}

void DeviceSearch::restore_devices() {
  for (size_t i = moved_.size(); i-- > 0;) {
    const auto [op, old] = moved_[i];
    params_.remove(op, now_.device[op]);
    params_.add(op, old);
    now_.device[op] = old;
    moved(op);
  }
}

void DeviceSearch::take_if_best(double us) {
  now_excess_ = next_excess_;
  if (now_excess_ > best_excess_ || (now_excess_ == best_excess_ && us >= best_us_)) return;
  best_ = now_;
  best_us_ = us;
  best_excess_ = now_excess_;
}

bool DeviceSearch::finish_round(const Annealed& annealed) {
  tried_ += annealed.moves;
  return !annealed.cut_off;
}

}  // namespace heddle
