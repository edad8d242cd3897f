#include "load_search.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

// Share of moves that take an op from the busiest device.
constexpr double kBusiestShare = 0.5;
constexpr size_t kLargestGroup = 12;
// Draws for an op of the busiest device before any other will do.
constexpr int kDraws = 8;
// Sums of loads are made anew after so many looks, against rounding.
constexpr uint64_t kMovesPerLook = 32, kLooksPerRefresh = 1 << 9;

}  // namespace

LoadSearch::LoadSearch(const FlatProblem& flat, std::vector<uint32_t> devices, const Reserve& reserve,
                       uint64_t seed)
    : flat_(flat),
      model_(flat),
      params_(flat, reserve),
      random_(seed),
      best_(std::move(devices)),
      mark_(flat.num_ops(), 0) {
  load(best_);
  best_us_ = model_.period_us();
  best_excess_ = now_excess_;
}

void LoadSearch::load(const std::vector<uint32_t>& devices) {
  for (uint32_t v = 0; v < devices.size(); ++v) {
    if (model_.device(v) >= 0) params_.remove(v, static_cast<uint32_t>(model_.device(v)));
    params_.add(v, devices[v]);
    model_.put(v, static_cast<int32_t>(devices[v]));
  }
  model_.refresh();
  now_norm_ = model_.norm_us();
  now_excess_ = params_.excess();
}

uint32_t LoadSearch::pick_op() {
  const bool from_busiest = random_.chance(kBusiestShare);
  uint32_t op = static_cast<uint32_t>(random_.below(flat_.num_ops()));
  if (!from_busiest) return op;
  const auto busiest = static_cast<int32_t>(model_.busiest());
  for (int i = 0; i < kDraws && model_.device(op) != busiest; ++i)
    op = static_cast<uint32_t>(random_.below(flat_.num_ops()));
  return op;
}

uint32_t LoadSearch::pick_device(uint32_t op) {
  const auto inputs = flat_.inputs(op);
  if (!inputs.empty() && random_.chance(0.25)) {
    return static_cast<uint32_t>(model_.device(flat_.producer(inputs[random_.below(inputs.size())])));
  }
  const auto outputs = flat_.outputs(op);
  if (!outputs.empty() && random_.chance(0.33)) {
    const auto readers = flat_.readers(outputs[random_.below(outputs.size())]);
    if (!readers.empty()) return static_cast<uint32_t>(model_.device(readers[random_.below(readers.size())]));
  }
  return static_cast<uint32_t>(random_.below(flat_.num_devices()));
}

bool LoadSearch::change(uint32_t op, uint32_t device) {
  const auto old = static_cast<uint32_t>(model_.device(op));
  if (old == device || !model_.possible(op, device)) return false;
  moved_.push_back({op, old});
  params_.remove(op, old);
  params_.add(op, device);
  model_.put(op, static_cast<int32_t>(device));
  return true;
}

bool LoadSearch::change_group(uint32_t op, uint32_t device) {
  const int32_t from = model_.device(op);
  const size_t size = 2 + random_.below(kLargestGroup - 1);
  group_.assign(1, op);
  mark_[op] = ++stamp_;
  for (size_t i = 0; i < group_.size() && group_.size() < size; ++i) {
    const auto visit = [&](uint32_t w) {
      if (group_.size() >= size || mark_[w] == stamp_ || model_.device(w) != from) return;
      mark_[w] = stamp_;
      group_.push_back(w);
    };
    for (const uint32_t t : flat_.outputs(group_[i])) {
      const auto readers = flat_.readers(t);
      for (size_t r = 0; r < readers.size() && r < kLargestGroup; ++r) visit(readers[r]);
    }
    for (const uint32_t t : flat_.inputs(group_[i])) visit(flat_.producer(t));
  }
  bool any = false;
  for (const uint32_t v : group_) any = change(v, device) || any;
  return any;
}

bool LoadSearch::propose() {
  if (change_some()) return true;
  undo();
  return false;
}

bool LoadSearch::change_some() {
  moved_.clear();
  const uint32_t op = pick_op();
  const double dice = random_.unit();
  if (dice < 0.5) return change(op, pick_device(op));
  if (dice < 0.75) return change_group(op, pick_device(op));
  const auto other = static_cast<uint32_t>(random_.below(flat_.num_ops()));
  const auto a = static_cast<uint32_t>(model_.device(op)), b = static_cast<uint32_t>(model_.device(other));
  return a != b && change(op, b) && change(other, a);
}

void LoadSearch::undo() {
  for (size_t i = moved_.size(); i-- > 0;) {
    const auto [op, old] = moved_[i];
    params_.remove(op, static_cast<uint32_t>(model_.device(op)));
    params_.add(op, old);
    model_.put(op, static_cast<int32_t>(old));
  }
}

void LoadSearch::take_if_best(int64_t excess) {
  now_excess_ = excess;
  if (excess > best_excess_) return;
  const double us = model_.period_us();
  if (excess == best_excess_ && us >= best_us_) return;
  best_us_ = us;
  best_excess_ = excess;
  for (uint32_t v = 0; v < best_.size(); ++v) best_[v] = static_cast<uint32_t>(model_.device(v));
}

void LoadSearch::look(double /*share*/, double /*temperature*/) {
  if (++looks_ % kLooksPerRefresh != 0) return;
  model_.refresh();
  now_norm_ = model_.norm_us();
}

double LoadSearch::rise(Metropolis& rule) {
  next_excess_ = params_.excess();
  next_norm_ = model_.norm_us();
  // Too much memory is worse than any load; less of it is worth any load.
  if (next_excess_ != now_excess_) return next_excess_ < now_excess_ ? 0 : kImpossible;
  rule.most();
  return (next_norm_ - now_norm_) / unit_us_;
}

void LoadSearch::keep() {
  now_norm_ = next_norm_;
  take_if_best(next_excess_);
}

bool LoadSearch::run(const SearchRound& round, const Deadline& deadline) {
  load(best_);
  stop_at_us_ = round.stop_at_us;
  unit_us_ = std::max(best_us_, 1e-30);
  const Annealed annealed = anneal(
      *this, {.hot = round.hot, .cold = round.cold, .moves = round.moves, .moves_per_look = kMovesPerLook},
      deadline, random_);
  tried_ += annealed.moves;
  return !annealed.cut_off;
}

std::optional<std::vector<uint32_t>> least_load_devices(const FlatProblem& flat, const Reserve& reserve,
                                                        const Deadline& deadline) {
  LoadModel model(flat);
  ParamUse params(flat, reserve);
  std::vector<uint32_t> devices(flat.num_ops(), 0);
  for (const uint32_t v : flat.topological()) {
    if (deadline.cancelled()) return std::nullopt;
    int32_t best = -1;
    double least = kImpossible;
    for (uint32_t i = 0; i < flat.num_devices(); ++i) {
      if (!model.possible(v, i)) continue;
      params.add(v, i);
      const bool fits = params.excess() == 0;
      params.remove(v, i);
      if (!fits) continue;
      model.put(v, static_cast<int32_t>(i));
      const double norm = model.norm_us();
      model.put(v, -1);
      if (norm < least) least = norm, best = static_cast<int32_t>(i);
    }
    if (best < 0) return std::nullopt;
    devices[v] = static_cast<uint32_t>(best);
    params.add(v, devices[v]);
    model.put(v, best);
  }
  return devices;
}

}  // namespace heddle
