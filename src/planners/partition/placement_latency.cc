#include "placement_latency.h"

#include <algorithm>

#include "heddle/base/units.h"

namespace heddle {

LatencyProblem::LatencyProblem(const PlacementGraph& w, int q)
    : workload(w),
      pieces(q),
      units(make_placement_units(w, PlacementOrder::kPieces)),
      unit_of(w.nodes.size()) {
  units.accelerators = w.accelerators * q;
  units.cpus = 1;
  for (size_t u = 0; u < units.size(); ++u)
    for (const auto v : units.members[u]) unit_of[at(v)] = static_cast<int32_t>(u);
}

PlacementSplit LatencyProblem::split(const std::vector<int32_t>& piece_of_unit) const {
  PlacementSplit result;
  result.device.resize(unit_of.size());
  result.piece.resize(unit_of.size(), 0);
  for (size_t v = 0; v < unit_of.size(); ++v) {
    const auto piece = piece_of_unit[at(unit_of[v])];
    result.device[v] = piece == cpu() ? workload.accelerators : piece / pieces;
    if (piece != cpu()) result.piece[v] = piece % pieces;
  }
  return result;
}

PlacementLatency::PlacementLatency(const LatencyProblem& problem, const std::vector<int32_t>& piece_of_unit)
    : problem_(problem), loads_(problem.units, piece_of_unit) {
  const auto& w = problem.workload;
  const auto count = at(problem.units.accelerators);
  members_.resize(count + 1);
  place_.resize(problem.units.size());
  for (size_t u = 0; u < place_.size(); ++u) {
    auto& list = members_[at(piece_of_unit[u])];
    place_[u] = static_cast<int32_t>(list.size());
    list.push_back(static_cast<int32_t>(u));
  }
  vertex_.resize(w.nodes.size());
  entering_.assign(count + w.nodes.size(), 0);
  for (size_t v = 0; v < vertex_.size(); ++v) {
    const auto piece = piece_of_unit[at(problem.unit_of[v])];
    vertex_[v] = static_cast<uint32_t>(piece == problem.cpu() ? count + v : at(piece));
    entering_[count + v] = static_cast<int32_t>(w.in[v].size());
    first_out_.push_back(static_cast<int32_t>(out_.size()));
    out_.insert(out_.end(), w.out[v].begin(), w.out[v].end());
  }
  first_out_.push_back(static_cast<int32_t>(out_.size()));
  for (const auto& [u, v] : w.edges)
    if (vertex(v) < count && vertex(u) != vertex(v)) ++entering_[vertex(v)];
  for (size_t p = 0; p < count; ++p)
    if (p % static_cast<size_t>(problem.pieces) != 0) ++entering_[p];
}

void PlacementLatency::move(int32_t unit, int32_t piece) {
  const auto from = loads_.device()[at(unit)];
  if (from == piece) return;
  loads_.move(unit, piece);
  auto& old_list = members_[at(from)];
  auto& new_list = members_[at(piece)];
  const auto last = old_list.back();
  old_list[at(place_[at(unit)])] = last;
  place_[at(last)] = place_[at(unit)];
  old_list.pop_back();
  place_[at(unit)] = static_cast<int32_t>(new_list.size());
  new_list.push_back(unit);
  const auto& w = problem_.workload;
  const auto count = at(problem_.units.accelerators);
  // One node after the other: edges inside of the unit are then counted right at each step.
  for (const auto v : problem_.units.members[at(unit)]) {
    const auto before = vertex(v);
    const auto after = piece == problem_.cpu() ? count + at(v) : at(piece);
    for (const auto u : w.in[at(v)]) {
      if (before < count && vertex(u) != before) --entering_[before];
      if (after < count && vertex(u) != after) ++entering_[after];
    }
    for (const auto x : w.out[at(v)]) {
      const auto there = vertex(x);
      if (there >= count) continue;
      if (there == before) ++entering_[there];
      if (there == after) --entering_[there];
    }
    vertex_[at(v)] = static_cast<uint32_t>(after);
  }
}

bool PlacementLatency::fits() const {
  const auto q = problem_.pieces;
  for (int32_t p = 0; p < problem_.units.accelerators; p += q) {
    double bytes = 0;
    for (int32_t i = p; i < p + q; ++i) bytes += loads_.bytes()[at(i)];
    if (bytes > problem_.units.accelerator_bytes) return false;
  }
  return true;
}

double PlacementLatency::time(double limit) {
  const auto& w = problem_.workload;
  const auto count = at(problem_.units.accelerators);
  const auto q = static_cast<size_t>(problem_.pieces);
  waiting_ = entering_;
  start_.assign(entering_.size(), 0);
  ready_.clear();
  size_t left = members_.size() - 1;  // vertices to be timed
  for (size_t p = 0; p < count; ++p)
    if (waiting_[p] == 0) ready_.push_back(static_cast<int32_t>(p));
  for (const auto unit : members_[count]) {
    for (const auto v : problem_.units.members[at(unit)]) {
      ++left;
      if (waiting_[count + at(v)] == 0) ready_.push_back(static_cast<int32_t>(count + at(v)));
    }
  }
  double latest = 0;
  const auto reach = [&](size_t s, double time) {
    start_[s] = std::max(start_[s], time);
    if (--waiting_[s] == 0) ready_.push_back(static_cast<int32_t>(s));
  };
  while (!ready_.empty()) {
    const auto s = at(ready_.back());
    ready_.pop_back();
    --left;
    const bool on_cpu = s >= count;
    const double finish = start_[s] + (on_cpu ? w.nodes[s - count].cpu : loads_.load()[s]);
    latest = std::max(latest, finish);
    if (latest > limit) return kInfinity;
    const auto leave = [&](int32_t v) {
      for (auto e = at(first_out_[at(v)]); e < at(first_out_[at(v) + 1]); ++e)
        if (const auto there = vertex(out_[e]); there != s) reach(there, finish);
    };
    if (on_cpu) {
      leave(static_cast<int32_t>(s - count));
      continue;
    }
    for (const auto unit : members_[s])
      for (const auto v : problem_.units.members[at(unit)]) leave(v);
    if ((s + 1) % q != 0) reach(s + 1, finish);
  }
  return left == 0 ? latest : kInfinity;
}

std::vector<int32_t> greedy_latency(const LatencyProblem& problem) {
  const auto& units = problem.units;
  std::vector<int32_t> piece(units.size(), problem.cpu());
  int32_t open = 0;
  double bytes = 0;
  bool used = false;  // the open piece has units
  for (size_t u = 0; u < units.size(); ++u) {
    // A unit on the CPUs ends the piece: what follows it must not feed what is before it.
    const bool may = units.on_accelerator[u] && units.bytes[u] <= units.accelerator_bytes;
    if (!may || bytes + units.bytes[u] > units.accelerator_bytes) {
      open += used ? problem.pieces : 0;
      bytes = 0;
      used = false;
    }
    if (!may) continue;
    if (open >= units.accelerators) break;
    bytes += units.bytes[u];
    used = true;
    piece[u] = open;
  }
  return piece;
}

std::vector<int32_t> line_latency(const LatencyProblem& problem, const std::vector<int32_t>& order,
                                  const Deadline& deadline) {
  const auto& w = problem.workload;
  const auto& units = problem.units;
  const size_t n = order.size(), k = at(w.accelerators);
  // best[i][a]: when the first i units can be done with a accelerators.
  std::vector<double> best((n + 1) * (k + 1), kInfinity);
  std::vector<std::pair<int32_t, bool>> from(best.size(), {-1, false});  // start, on the CPUs
  best[0] = 0;
  std::vector<double> lat(w.nodes.size(), 0);
  std::vector<int32_t> topological(w.nodes.size());
  for (size_t i = 0; i < w.order.size(); ++i) topological[at(w.order[i])] = static_cast<int32_t>(i);
  std::vector<std::vector<int32_t>> members(n);  // in topological order
  for (size_t i = 0; i < n; ++i) {
    members[i] = units.members[at(order[i])];
    std::sort(members[i].begin(), members[i].end(),
              [&](int32_t a, int32_t b) { return topological[at(a)] < topological[at(b)]; });
  }
  std::vector<int32_t> position(units.size());
  for (size_t i = 0; i < n; ++i) position[at(order[i])] = static_cast<int32_t>(i);
  for (size_t i = 0; i < n; ++i) {
    const double* here = &best[i * (k + 1)];
    if (*std::min_element(here, here + k + 1) == kInfinity) continue;
    if (deadline.should_stop()) return {};
    PlacementSegment segment(units);
    double block = 0;
    bool fits = true;
    for (size_t j = i; j < n; ++j) {
      for (const auto v : members[j]) {
        double start = 0;
        for (const auto u : w.in[at(v)])
          if (at(position[at(problem.unit_of[at(u)])]) >= i) start = std::max(start, lat[at(u)]);
        lat[at(v)] = start + w.nodes[at(v)].cpu;
        block = std::max(block, lat[at(v)]);
      }
      if (fits) {
        segment.add(order[j]);
        fits = segment.only_cpu() == 0 && segment.bytes() <= units.accelerator_bytes;
      }
      for (size_t a = 0; a <= k; ++a) {
        if (here[a] == kInfinity) continue;
        const auto offer = [&](size_t used, double value, bool on_cpu) {
          const auto to = (j + 1) * (k + 1) + used;
          if (value >= best[to]) return;
          best[to] = value;
          from[to] = {static_cast<int32_t>(i), on_cpu};
        };
        offer(a, here[a] + block, true);
        if (fits && a < k) offer(a + 1, here[a] + segment.load(), false);
      }
    }
  }
  const double* last = &best[n * (k + 1)];
  size_t used = static_cast<size_t>(std::min_element(last, last + k + 1) - last);
  if (last[used] == kInfinity) return {};
  std::vector<int32_t> piece(n, problem.cpu());
  for (size_t i = n; i > 0;) {
    const auto [start, on_cpu] = from[i * (k + 1) + used];
    if (!on_cpu) {
      --used;
      for (size_t x = at(start); x < i; ++x)
        piece[at(order[x])] = static_cast<int32_t>(used) * problem.pieces;
    }
    i = at(start);
  }
  return piece;
}

}  // namespace heddle
