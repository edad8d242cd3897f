#include "order_search.h"

#include <algorithm>

namespace heddle {
namespace {

// Share of moves that start from an op on the critical path: only those can shorten the makespan, the others
// open ways.
constexpr double kCriticalShare = 0.7;
// Moves taken after which the critical path is found again.
constexpr int kStaleAfter = 6;
// Elementary steps between two looks at the clock, and moves between two temperatures, at most.
constexpr uint64_t kStepsPerLook = 20000, kMostMovesPerLook = 32;

}  // namespace

OrderSearch::OrderSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed)
    : DeviceSearch(flat, std::move(start), reserve, seed), timer_(flat) {
  place_.resize(flat.num_ops());
  for (const double us : flat.least_us()) mean_us_ += us / static_cast<double>(flat.num_ops());
  load();
  best_us_ = now_us_;
  best_excess_ = now_excess_;
}

void OrderSearch::load() {
  load_best();
  for (uint32_t i = 0; i < now_.order.size(); ++i) place_[now_.order[i]] = i;
  now_us_ = timer_.time(now_, kImpossible);
  timer_.keep();
  refresh_critical();
}

void OrderSearch::refresh_critical() {
  critical_ = timer_.critical(now_);
  stale_ = 0;
}

uint32_t OrderSearch::pick_op() {
  if (!critical_.ops.empty() && random_.chance(kCriticalShare))
    return critical_.ops[random_.below(critical_.ops.size())];
  return static_cast<uint32_t>(random_.below(flat_.num_ops()));
}

// A producer or reader of the op; the op itself when it has none.
uint32_t OrderSearch::random_neighbour(uint32_t op) {
  const auto inputs = flat_.inputs(op);
  const auto outputs = flat_.outputs(op);
  const size_t pick = random_.below(inputs.size() + outputs.size() + 1);
  if (pick < inputs.size()) return flat_.producer(inputs[pick]);
  if (pick < inputs.size() + outputs.size()) {
    const auto readers = flat_.readers(outputs[pick - inputs.size()]);
    if (!readers.empty()) return readers[random_.below(readers.size())];
  }
  return op;
}

uint32_t OrderSearch::pick_device(uint32_t op) {
  if (random_.chance(0.5)) {
    const uint32_t there = now_.device[random_neighbour(op)];
    if (there != now_.device[op]) return there;
  }
  return static_cast<uint32_t>(random_.below(flat_.num_devices()));
}

void OrderSearch::moved(uint32_t op) {
  first_changed_ = std::min(first_changed_, static_cast<size_t>(place_[op]));
}

void OrderSearch::save_range(size_t lo, size_t hi) {
  range_lo_ = lo;
  saved_.assign(now_.order.begin() + static_cast<long>(lo), now_.order.begin() + static_cast<long>(hi));
  first_changed_ = std::min(first_changed_, lo);
}

void OrderSearch::store_range(size_t lo, const std::vector<uint32_t>& front,
                              const std::vector<uint32_t>& back) {
  for (const auto* part : {&front, &back}) {
    for (const uint32_t v : *part) {
      now_.order[lo] = v;
      place_[v] = static_cast<uint32_t>(lo++);
    }
  }
}

// To any place between the last op that it reads from and the first that reads from it.
bool OrderSearch::shift(uint32_t op) {
  size_t lo = 0, hi = flat_.num_ops();
  for (const uint32_t t : flat_.inputs(op)) lo = std::max<size_t>(lo, place_[flat_.producer(t)] + 1);
  for (const uint32_t t : flat_.outputs(op)) {
    for (const uint32_t w : flat_.readers(t)) hi = std::min<size_t>(hi, place_[w]);
  }
  const size_t from = place_[op], to = lo + random_.below(hi - lo);
  if (to == from) return false;
  save_range(std::min(from, to), std::max(from, to) + 1);
  front_.clear();
  if (to < from) front_.push_back(op);
  for (const uint32_t v : saved_) {
    if (v != op) front_.push_back(v);
  }
  if (to > from) front_.push_back(op);
  store_range(range_lo_, front_, {});
  return true;
}

// `second` and what it needs go before `first`. False when it needs `first`.
bool OrderSearch::pull_before(uint32_t first, uint32_t second) {
  const size_t lo = place_[first], hi = place_[second] + 1;
  if (lo + 1 >= hi) return false;
  ++stamp_;
  mark_[second] = stamp_;
  front_.clear();
  back_.clear();
  for (size_t i = hi; i-- > lo;) {
    const uint32_t v = now_.order[i];
    if (mark_[v] != stamp_) {
      back_.push_back(v);
      continue;
    }
    if (v == first) return false;
    front_.push_back(v);
    for (const uint32_t t : flat_.inputs(v)) mark_[flat_.producer(t)] = stamp_;
  }
  std::reverse(front_.begin(), front_.end());
  std::reverse(back_.begin(), back_.end());
  save_range(lo, hi);
  store_range(lo, front_, back_);
  return true;
}

// `first` and what needs it go after `second`. False when `second` needs it.
bool OrderSearch::push_after(uint32_t first, uint32_t second) {
  const size_t lo = place_[first], hi = place_[second] + 1;
  if (lo + 1 >= hi) return false;
  ++stamp_;
  mark_[first] = stamp_;
  front_.clear();
  back_.clear();
  for (size_t i = lo; i < hi; ++i) {
    const uint32_t v = now_.order[i];
    bool needs = mark_[v] == stamp_;
    for (const uint32_t t : flat_.inputs(v)) needs = needs || mark_[flat_.producer(t)] == stamp_;
    if (!needs) {
      front_.push_back(v);
      continue;
    }
    if (v == second) return false;
    mark_[v] = stamp_;
    back_.push_back(v);
  }
  save_range(lo, hi);
  store_range(lo, front_, back_);
  return true;
}

// With an op nearby in the order on another device.
bool OrderSearch::swap_devices(uint32_t op) {
  const size_t n = flat_.num_ops(), reach = std::min<size_t>(n, 4 * flat_.num_devices() + 2);
  const size_t lo = place_[op] > reach / 2 ? place_[op] - reach / 2 : 0;
  const uint32_t other = now_.order[std::min(n - 1, lo + random_.below(reach))];
  const uint32_t a = now_.device[op], b = now_.device[other];
  return a != b && change_device(op, b) && change_device(other, a);
}

bool OrderSearch::propose() {
  if (change()) return true;
  restore();
  return false;
}

bool OrderSearch::change() {
  moved_.clear();
  saved_.clear();
  first_changed_ = flat_.num_ops();
  const double dice = random_.unit();
  if (dice < 0.30) {
    const uint32_t op = pick_op();
    return change_device(op, pick_device(op));
  }
  if (dice < 0.45) {
    const uint32_t op = pick_op();
    const bool moved = change_device(op, pick_device(op));
    return shift(op) || moved;
  }
  if (dice < 0.75 && !critical_.ops.empty()) {
    const size_t i = random_.below(critical_.ops.size());
    if (critical_.behind[i] == UINT32_MAX || place_[critical_.behind[i]] > place_[critical_.ops[i]])
      return false;
    return random_.chance(0.5) ? pull_before(critical_.behind[i], critical_.ops[i])
                               : push_after(critical_.behind[i], critical_.ops[i]);
  }
  if (dice < 0.82) return shift(pick_op());
  if (dice < 0.92) {
    const uint32_t op = pick_op(), to = pick_device(op);
    return to != now_.device[op] && change_group(op, to);
  }
  return swap_devices(pick_op());
}

void OrderSearch::restore() {
  if (!saved_.empty()) store_range(range_lo_, saved_, {});
  restore_devices();
}

double OrderSearch::rise(Metropolis& rule) {
  next_excess_ = params_.excess();
  const bool less = next_excess_ < now_excess_;
  const double limit = less ? kImpossible : now_us_ + rule.most();
  if (next_excess_ > now_excess_) return kImpossible;
  next_us_ = timer_.time(now_, limit, now_us_ < kImpossible ? first_changed_ : 0);
  if (!(next_us_ < kImpossible)) return kImpossible;
  return less ? 0 : next_us_ - now_us_;
}

void OrderSearch::keep() {
  timer_.keep();
  now_us_ = next_us_;
  take_if_best(now_us_);
  if (++stale_ >= kStaleAfter) refresh_critical();
}

void OrderSearch::undo() {
  if (next_excess_ <= now_excess_) timer_.drop();
  restore();
}

bool OrderSearch::run(const SearchRound& round, const Deadline& deadline) {
  load();
  stop_at_us_ = round.stop_at_us;
  // Very long schedules of short ops would not change otherwise.
  const double unit = std::max({mean_us_, best_us_ < kImpossible ? 1e-3 * best_us_ : 0, 1e-9});
  const Annealed annealed =
      anneal(*this,
             {.hot = round.hot * unit,
              .cold = round.cold * unit,
              .moves = round.moves,
              .moves_per_look = std::clamp<uint64_t>(kStepsPerLook / (flat_.num_ops() + flat_.num_reads()), 1,
                                                     kMostMovesPerLook)},
             deadline, random_);
  return finish_round(annealed);
}

}  // namespace heddle
