#include "cold_anneal.h"

#include <algorithm>

#include "slot_problem.h"

namespace heddle {
namespace {

// Beside the makespan, the mean end of ops guides the search over plateaus.
constexpr double kMeanWeight = 0.02;
constexpr size_t kLongestWindow = 48;
// Last temperature over the first one.
constexpr double kColdOfHot = 1e-3;
constexpr uint64_t kOpsPerLook = 1 << 15;
constexpr size_t kFarthestShift = 24;

}  // namespace

std::optional<ColdDecisions> greedy_cold(const ColdTables& tables, const std::vector<uint32_t>& order,
                                         const GreedyOptions& options) {
  const FlatProblem& flat = tables.flat();
  ColdTimer timer(tables);
  ColdDecisions d(flat.num_ops());
  d.order = order;
  for (const uint32_t v : order) {
    double least = kImpossible;
    const auto consider = [&](size_t i, uint8_t way) {
      const double finish = timer.try_op(v, static_cast<uint8_t>(i), way);
      const double cost = finish + options.bus_price * timer.held_us();
      if (!(finish < kImpossible) || cost >= least) return;
      least = cost;
      d.device[v] = static_cast<uint8_t>(i);
      d.way[v] = way;
    };
    for (size_t i = 0; i < flat.num_devices(); ++i) {
      if (!options.devices[i]) continue;
      consider(i, 0);
      if (!tables.has_params(v) || !flat.needs_load(i)) continue;
      for (size_t w = 1; w < tables.ways(i).size() && options.helpers; ++w)
        consider(i, static_cast<uint8_t>(w));
      if (options.in_place && tables.in_place_us(v, i) < kImpossible) consider(i, kInPlace);
    }
    if (!(least < kImpossible)) return std::nullopt;
    timer.place(v, d.device[v], d.way[v]);
  }
  return d;
}

ColdAnneal::ColdAnneal(const ColdTables& tables, uint64_t seed, Reserve reserve)
    : tables_(tables),
      flat_(tables.flat()),
      timer_(tables),
      random_(seed),
      reserve_(std::move(reserve)),
      bus_(buses_of(tables)),
      place_(flat_.num_ops()) {}

double ColdAnneal::cost(const ColdDecisions& decisions) {
  ++timed_;
  const double us = timer_.time(decisions);
  if (!(us < kImpossible) || timer_.excess_bytes(reserve_) > 0) return kImpossible;
  return us + kMeanWeight * timer_.mean_finish_us();
}

uint32_t ColdAnneal::bus_of(size_t device, uint8_t way) const {
  const auto& ways = tables_.ways(device);
  if (way == kInPlace || way >= ways.size() || ways[way].helper < 0) return bus_[device];
  return bus_[static_cast<size_t>(ways[way].helper)];
}

uint8_t ColdAnneal::way_over(size_t device, uint32_t bus) const {
  for (size_t w = 0; w < tables_.ways(device).size(); ++w) {
    if (const auto way = static_cast<uint8_t>(w); bus_of(device, way) == bus) return way;
  }
  return 0;
}

void ColdAnneal::note_places(const ColdDecisions& d) {
  for (uint32_t i = 0; i < d.order.size(); ++i) place_[d.order[i]] = i;
}

size_t ColdAnneal::pick_place() {
  if (!critical_.empty() && random_.chance(0.6)) return place_[critical_[random_.below(critical_.size())]];
  return random_.below(flat_.num_ops());
}

// Ops of one device that follow each other go to another one; what they load keeps its bus, or takes the new
// device's.
void ColdAnneal::move_window(ColdDecisions& d, size_t place) {
  const uint8_t from = d.device[d.order[place]];
  const auto to = static_cast<uint8_t>(random_.below(flat_.num_devices()));
  const size_t length = random_.chance(0.3) ? 1 : 1 + random_.below(kLongestWindow);
  const bool all = random_.chance(0.3), keep_bus = random_.chance(0.5);
  for (size_t i = place; i < std::min(d.order.size(), place + length); ++i) {
    const uint32_t v = d.order[i];
    if ((!all && d.device[v] != from) || !(flat_.us(v, to) < kImpossible)) continue;
    const bool in_place = d.way[v] == kInPlace;
    const uint32_t bus = bus_of(d.device[v], d.way[v]);
    d.device[v] = to;
    if (in_place && tables_.in_place_us(v, to) < kImpossible) continue;
    d.way[v] = keep_bus && !in_place ? way_over(to, bus) : 0;
  }
}

bool ColdAnneal::change_way(ColdDecisions& d, uint32_t v) {
  const size_t device = d.device[v];
  if (!tables_.has_params(v) || !flat_.needs_load(device)) return false;
  const size_t ways = tables_.ways(device).size();
  const bool may_in_place = tables_.in_place_us(v, device) < kImpossible;
  const size_t choice = random_.below(ways + (may_in_place ? 1 : 0));
  const uint8_t way = choice < ways ? static_cast<uint8_t>(choice) : kInPlace;
  if (way == d.way[v]) return false;
  d.way[v] = way;
  return true;
}

bool ColdAnneal::change_lead(ColdDecisions& d, uint32_t v, size_t place) {
  if (!tables_.has_params(v) || d.way[v] == kInPlace) return false;
  const size_t most = std::min<size_t>(place, 4 * kLongestWindow);
  const auto lead = static_cast<uint32_t>(random_.chance(0.3) ? 0 : random_.below(most + 1));
  if (lead == d.lead[v]) return false;
  d.lead[v] = lead;
  return true;
}

// An op runs earlier or later among those that neither feed it nor read from it.
bool ColdAnneal::shift(ColdDecisions& d, size_t place) {
  const uint32_t v = d.order[place];
  size_t first = place > kFarthestShift ? place - kFarthestShift : 0;
  size_t last = std::min(d.order.size() - 1, place + kFarthestShift);
  for (const uint32_t t : flat_.inputs(v)) first = std::max<size_t>(first, place_[flat_.producer(t)] + 1);
  for (const uint32_t t : flat_.outputs(v)) {
    for (const uint32_t w : flat_.readers(t)) last = std::min<size_t>(last, place_[w] - 1);
  }
  if (first >= last) return false;
  const size_t to = first + random_.below(last - first + 1);
  if (to == place) return false;
  const auto at = [&](size_t i) { return d.order.begin() + static_cast<int64_t>(i); };
  if (to < place)
    std::rotate(at(to), at(place), at(place) + 1);
  else
    std::rotate(at(place), at(place) + 1, at(to) + 1);
  return true;
}

bool ColdAnneal::change(ColdDecisions& d) {
  const size_t place = pick_place();
  const uint32_t v = d.order[place];
  const double kind = random_.unit();
  if (kind < 0.45 && flat_.num_devices() > 1) {
    move_window(d, place);
    return true;
  }
  if (kind < 0.70) return change_way(d, v);
  if (kind < 0.85) return change_lead(d, v, place);
  return shift(d, place);
}

void ColdAnneal::look(double /*share*/, double /*temperature*/) {
  timer_.time(now_);
  critical_ = timer_.critical_ops();
  note_places(now_);
}

bool ColdAnneal::propose() {
  next_ = now_;
  return change(next_);
}

double ColdAnneal::rise(Metropolis& /*rule*/) {
  next_cost_ = cost(next_);
  return next_cost_ <= now_cost_ ? 0 : (next_cost_ - now_cost_) / best_cost_;
}

void ColdAnneal::keep() {
  const bool reordered = next_.order != now_.order;
  std::swap(now_, next_);
  now_cost_ = next_cost_;
  if (reordered) note_places(now_);
  if (now_cost_ >= best_cost_) return;
  best_ = now_;
  best_cost_ = now_cost_;
}

ColdDecisions ColdAnneal::round(const ColdDecisions& from, size_t moves, double heat,
                                const Deadline& deadline) {
  now_ = best_ = from;
  now_cost_ = best_cost_ = cost(now_);
  // A move times the whole plan.
  const uint64_t per_look = std::clamp<uint64_t>(kOpsPerLook / std::max<size_t>(1, from.order.size()), 1, 32);
  anneal(*this, {.hot = heat, .cold = heat * kColdOfHot, .moves = moves, .moves_per_look = per_look},
         deadline, random_);
  return best_;
}

}  // namespace heddle
