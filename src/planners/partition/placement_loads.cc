// Incremental loads of devices, a greedy start and combinatorial bounds for max-load.
#include <algorithm>
#include <limits>
#include <numeric>

#include "bounds/max_flow.h"
#include "heddle/base/units.h"
#include "placement_load.h"

namespace heddle {

template <int kSign>
void PlacementSegment::change(int32_t unit) {
  const auto u = at(unit);
  work_ += kSign * units_.accelerator[u];
  cpu_ += kSign * units_.cpu[u];
  bytes_ += kSign * units_.bytes[u];
  if (!units_.on_accelerator[u]) only_cpu_ += kSign;
  for (const auto net : units_.nets_of[u]) {
    const auto& n = units_.nets[at(net)];
    const auto count = count_[at(net)] += kSign;
    const auto with_unit = kSign > 0 ? count : count + 1;
    if (with_unit == 1) transfer_ += kSign * n.cost;
    if (at(with_unit) == n.pins.size()) transfer_ -= kSign * n.cost;
  }
}

void PlacementSegment::add(int32_t unit) { change<1>(unit); }
void PlacementSegment::remove(int32_t unit) { change<-1>(unit); }

PlacementLoads::PlacementLoads(const PlacementUnits& units, std::vector<int32_t> device)
    : units_(units),
      devices_(static_cast<size_t>(units.devices())),
      device_(std::move(device)),
      count_(units.nets.size() * devices_, 0),
      span_(units.nets.size(), 0),
      place_in_cut_(units.nets.size(), -1),
      load_(devices_, 0),
      bytes_(devices_, 0) {
  for (size_t u = 0; u < units.size(); ++u) {
    const auto d = at(device_[u]);
    load_[d] += units.time(static_cast<int32_t>(u), device_[u]);
    bytes_[d] += units.bytes[u];
  }
  for (size_t net = 0; net < units.nets.size(); ++net) {
    for (const auto pin : units.nets[net].pins)
      if (count_[net * devices_ + at(device_[at(pin)])]++ == 0) ++span_[net];
    if (span_[net] < 2) continue;
    set_cut(static_cast<int32_t>(net), true);
    for (int32_t d = 0; d < units.accelerators; ++d)
      if (count_[net * devices_ + at(d)] > 0) load_[at(d)] += units.nets[net].cost;
  }
}

void PlacementLoads::move(int32_t unit, int32_t to) {
  const auto from = device_[at(unit)];
  if (from == to) return;
  const bool from_pays = !units_.is_cpu(from), to_pays = !units_.is_cpu(to);
  load_[at(from)] -= units_.time(unit, from);
  load_[at(to)] += units_.time(unit, to);
  bytes_[at(from)] -= units_.bytes[at(unit)];
  bytes_[at(to)] += units_.bytes[at(unit)];
  device_[at(unit)] = to;
  for (const auto net : units_.nets_of[at(unit)]) {
    const double cost = units_.nets[at(net)].cost;
    const auto left = --count_[at(net) * devices_ + at(from)];
    const auto there = count_[at(net) * devices_ + at(to)]++;
    auto& span = span_[at(net)];
    const auto before = span;
    span += (there == 0 ? 1 : 0) - (left == 0 ? 1 : 0);
    if (before == 1) {  // it was whole on `from`, and is cut now
      set_cut(net, true);
      if (from_pays) load_[at(from)] += cost;
      if (to_pays) load_[at(to)] += cost;
    } else if (span == 1) {  // it was cut between the two, and is whole on `to` now
      set_cut(net, false);
      if (from_pays) load_[at(from)] -= cost;
      if (to_pays) load_[at(to)] -= cost;
    } else {
      if (left == 0 && from_pays) load_[at(from)] -= cost;
      if (there == 0 && to_pays) load_[at(to)] += cost;
    }
  }
}

void PlacementLoads::set_cut(int32_t net, bool cut) {
  auto& place = place_in_cut_[at(net)];
  if (cut) {
    place = static_cast<int32_t>(cut_.size());
    cut_.push_back(net);
    return;
  }
  place_in_cut_[at(cut_.back())] = place;
  cut_[at(place)] = cut_.back();
  cut_.pop_back();
  place = -1;
}

double PlacementLoads::max_load() const { return *std::max_element(load_.begin(), load_.end()); }

bool PlacementLoads::fits() const {
  for (int32_t d = 0; d < units_.accelerators; ++d)
    if (bytes_[at(d)] > units_.accelerator_bytes * (1 + 1e-12)) return false;
  return true;
}

std::vector<int32_t> greedy_load(const PlacementUnits& units) {
  const size_t n = units.size();
  std::vector<PlacementSegment> segments(static_cast<size_t>(units.devices()), PlacementSegment(units));
  std::vector<int32_t> device(n, 0);
  for (size_t u = 0; u < n; ++u) {
    const auto unit = static_cast<int32_t>(u);
    int32_t best = -1;
    double best_load = 0;
    bool best_fits = false;
    for (int32_t d = 0; d < units.devices(); ++d) {
      if (!units.allowed(unit, d)) continue;
      auto& segment = segments[at(d)];
      segment.add(unit);
      const double load = units.is_cpu(d) ? segment.cpu() : segment.load();
      const bool fits = units.is_cpu(d) || segment.bytes() <= units.accelerator_bytes;
      segment.remove(unit);
      if (best < 0 || fits > best_fits || (fits == best_fits && load < best_load)) {
        best = d;
        best_load = load;
        best_fits = fits;
      }
    }
    if (best < 0) return {};
    segments[at(best)].add(unit);
    device[u] = best;
  }
  return device;
}

double load_bound(const PlacementUnits& units) {
  const size_t n = units.size();
  double bound = 0, work = 0;
  for (size_t u = 0; u < n; ++u) {
    const bool may = units.on_accelerator[u] && units.accelerators > 0;
    double best = may ? units.accelerator[u] : kInfinity;
    if (units.cpus > 0) best = std::min(best, units.cpu[u]);
    bound = std::max(bound, best);
    if (may) work += units.accelerator[u];
  }
  // Smallest T so that the units, divided at will, fill the accelerators up to T each and the CPUs up to T
  // each: a knapsack whose items are the units, best relieved accelerator time per CPU time first.
  std::vector<int32_t> order;
  double on_cpu = 0;
  for (size_t u = 0; u < n; ++u) {
    if (units.on_accelerator[u] && units.accelerators > 0) {
      order.push_back(static_cast<int32_t>(u));
    } else {
      on_cpu += units.cpu[u];
    }
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return units.accelerator[at(a)] * units.cpu[at(b)] > units.accelerator[at(b)] * units.cpu[at(a)];
  });
  const double k = units.accelerators, c = units.cpus;
  if (c == 0) return std::max(bound, work / k);
  if (k == 0) return std::max(bound, on_cpu / c);
  // Moving units in this order, the accelerators' average falls and the CPUs' rises until they meet.
  double relieved = work, loaded = on_cpu;
  for (const auto u : order) {
    const double a = units.accelerator[at(u)], p = units.cpu[at(u)];
    if ((relieved - a) / k <= (loaded + p) / c) {
      // The part x in [0, 1] with (relieved - x a) / k == (loaded + x p) / c.
      const double denominator = a / k + p / c;
      const double x = denominator > 0 ? std::clamp((relieved / k - loaded / c) / denominator, 0.0, 1.0) : 0;
      relieved -= x * a;
      break;
    }
    relieved -= a;
    loaded += p;
  }
  return std::max({bound, relieved / k, std::min(on_cpu / c, std::numeric_limits<double>::max())});
}

// A max-load bound from minimum cuts. The accelerator that holds unit u holds some set S of units around it,
// so its load is at least
//   f(u) = min over S containing u of ( work of S + cost of the nets that S cuts ),
// which is a minimum cut: u is the source; each unit has an edge to the sink of its work; a net is a vertex
// pair with an edge of its cost, entered from and left to all its units. Units with f(u) > T are on CPUs in
// any split of max-load T, whose loads they add up to; the least T that allows this is the bound.
double cut_bound(const PlacementUnits& units, double enough, const Deadline& deadline) {
  const size_t n = units.size(), sink = n + 2 * units.nets.size();
  MaxFlow network(sink + 1);
  double whole = 0;
  for (size_t u = 0; u < n; ++u) {
    whole += units.accelerator[u];
    if (units.accelerator[u] > 0) network.connect(u, sink, units.accelerator[u]);
  }
  for (size_t net = 0; net < units.nets.size(); ++net) {
    const size_t in = n + 2 * net, out = in + 1;
    whole += units.nets[net].cost;
    network.connect(in, out, units.nets[net].cost);
    for (const auto pin : units.nets[net].pins) {
      network.connect(at(pin), in, kInfinity);
      network.connect(out, at(pin), kInfinity);
    }
  }
  // Those that would weigh most on a CPU say most; without CPUs all do.
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return units.cpu[at(a)] > units.cpu[at(b)]; });
  std::vector<std::pair<double, double>> found;  // f(u), cpu(u)
  for (const auto u : order) {
    if (deadline.should_stop()) break;
    MaxFlow flow = network;
    const double f = units.on_accelerator[at(u)] && units.accelerators > 0
                         ? flow.run(at(u), sink, enough, whole * 1e-13)
                         : kInfinity;
    found.emplace_back(f, units.cpu[at(u)]);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  // The first i on CPUs, the others on accelerators.
  double bound = kInfinity, on_cpus = 0;
  for (size_t i = 0; i <= found.size(); ++i) {
    const double cpus = on_cpus == 0 ? 0 : units.cpus > 0 ? on_cpus / units.cpus : kInfinity;
    bound = std::min(bound, std::max(cpus, i < found.size() ? found[i].first : 0.0));
    if (i < found.size()) on_cpus += found[i].second;
    if (units.cpus == 0) break;
  }
  // Rounding of the flows, and those that were stopped because they are large enough.
  return std::min(bound, enough) * (1 - 1e-9);
}

}  // namespace heddle
