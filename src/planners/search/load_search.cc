#include "load_search.h"

#include <algorithm>

#include "lists/construction.h"

namespace heddle {
namespace {

// Share of moves that take an op from the busiest device.
constexpr double kBusiestShare = 0.5;
// Draws for an op of the busiest device before any other will do.
constexpr int kDraws = 8;
// Sums of loads are made anew after so many looks, against rounding.
constexpr uint64_t kMovesPerLook = 32, kLooksPerRefresh = 1 << 9;

}  // namespace

LoadSearch::LoadSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed)
    : DeviceSearch(flat, std::move(start), reserve, seed), model_(flat) {
  load();
  best_us_ = model_.period_us();
  best_excess_ = now_excess_;
}

void LoadSearch::load() {
  load_best();
  for (uint32_t v = 0; v < now_.device.size(); ++v) moved(v);
  model_.refresh();
  now_norm_ = model_.norm_us();
}

uint32_t LoadSearch::pick_op() {
  const bool from_busiest = random_.chance(kBusiestShare);
  uint32_t op = static_cast<uint32_t>(random_.below(flat_.num_ops()));
  if (!from_busiest) return op;
  const uint32_t busiest = model_.busiest();
  for (int i = 0; i < kDraws && now_.device[op] != busiest; ++i)
    op = static_cast<uint32_t>(random_.below(flat_.num_ops()));
  return op;
}

uint32_t LoadSearch::pick_device(uint32_t op) {
  const auto inputs = flat_.inputs(op);
  if (!inputs.empty() && random_.chance(0.25)) {
    return now_.device[flat_.producer(inputs[random_.below(inputs.size())])];
  }
  const auto outputs = flat_.outputs(op);
  if (!outputs.empty() && random_.chance(0.33)) {
    const auto readers = flat_.readers(outputs[random_.below(outputs.size())]);
    if (!readers.empty()) return now_.device[readers[random_.below(readers.size())]];
  }
  return static_cast<uint32_t>(random_.below(flat_.num_devices()));
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
  if (dice < 0.5) return change_device(op, pick_device(op));
  if (dice < 0.75) return change_group(op, pick_device(op));
  const auto other = static_cast<uint32_t>(random_.below(flat_.num_ops()));
  const uint32_t a = now_.device[op], b = now_.device[other];
  return a != b && change_device(op, b) && change_device(other, a);
}

void LoadSearch::look(double /*share*/, double /*temperature*/) {
  if (++looks_ % kLooksPerRefresh != 0) return;
  model_.refresh();
  now_norm_ = model_.norm_us();
}

double LoadSearch::rise(Metropolis& rule) {
  next_excess_ = params_.excess();
  next_norm_ = model_.norm_us();
  if (next_excess_ != now_excess_) return next_excess_ < now_excess_ ? 0 : kImpossible;
  rule.most();
  return (next_norm_ - now_norm_) / unit_us_;
}

void LoadSearch::keep() {
  now_norm_ = next_norm_;
  take_if_best(model_.period_us());
}

bool LoadSearch::run(const SearchRound& round, const Deadline& deadline) {
  load();
  stop_at_us_ = round.stop_at_us;
  unit_us_ = std::max(best_us_, 1e-30);
  const Annealed annealed = anneal(
      *this, {.hot = round.hot, .cold = round.cold, .moves = round.moves, .moves_per_look = kMovesPerLook},
      deadline, random_);
  return finish_round(annealed);
}

std::optional<FlatPlan> least_load_plan(const FlatProblem& flat, const Reserve& reserve,
                                        const Deadline& deadline) {
  LoadModel model(flat);
  ParamUse params(flat, reserve);
  FlatPlan plan{std::vector<uint32_t>(flat.num_ops(), 0), topological_list(flat)};
  for (const uint32_t v : plan.order) {
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
    plan.device[v] = static_cast<uint32_t>(best);
    params.add(v, plan.device[v]);
    model.put(v, best);
  }
  return plan;
}

}  // namespace heddle
