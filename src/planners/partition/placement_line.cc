// Max-load splits of one order of the units: Tarnawski et al. 2020, section 5.1.2 (DPL), which applies the
// recursion of their section 5.1.1 to prefixes instead of ideals. Two loops of its own: the program over ideals
// (placement_ideals.cc) on the lattice of prefixes takes 105 ms for BERT-12's training graph, these take 65 ms.
#include <algorithm>
#include <limits>

#include "placement_load.h"

namespace heddle {

std::vector<int32_t> line_load(const PlacementUnits& units, const std::vector<int32_t>& order,
                               const Deadline& deadline) {
  const size_t n = order.size();
  const size_t k = static_cast<size_t>(units.accelerators), c = static_cast<size_t>(units.cpus);
  const size_t states = (k + 1) * (c + 1);
  const double infinity = std::numeric_limits<double>::infinity();
  // best[i][a, p]: the first i units on a accelerators and p CPUs.
  std::vector<double> best((n + 1) * states, infinity);
  std::vector<std::pair<int32_t, bool>> from((n + 1) * states, {-1, false});  // start, on a CPU
  best[0] = 0;
  for (size_t i = 0; i < n; ++i) {
    const double* here = &best[i * states];
    if (*std::min_element(here, here + states) == infinity) continue;
    if (deadline.should_stop()) return {};
    PlacementSegment segment(units);
    for (size_t j = i; j < n; ++j) {
      segment.add(order[j]);
      const bool fits = segment.only_cpu() == 0 && segment.bytes() <= units.accelerator_bytes;
      double* there = &best[(j + 1) * states];
      const auto offer = [&](size_t state, double value, bool on_cpu) {
        if (value >= there[state]) return;
        there[state] = value;
        from[(j + 1) * states + state] = {static_cast<int32_t>(i), on_cpu};
      };
      for (size_t a = 0; a <= k; ++a) {
        for (size_t p = 0; p <= c; ++p) {
          const double value = here[a * (c + 1) + p];
          if (value == infinity) continue;
          if (a < k && fits) offer((a + 1) * (c + 1) + p, std::max(value, segment.load()), false);
          if (p < c) offer(a * (c + 1) + p + 1, std::max(value, segment.cpu()), true);
        }
      }
      if (!fits && c == 0) break;
    }
  }
  const double* last = &best[n * states];
  size_t state = static_cast<size_t>(std::min_element(last, last + states) - last);
  if (last[state] == infinity) return {};
  std::vector<int32_t> device(n, -1);
  for (size_t i = n; i > 0;) {
    const auto [start, on_cpu] = from[i * states + state];
    const size_t a = state / (c + 1), p = state % (c + 1);
    const size_t d = on_cpu ? k + p - 1 : a - 1;
    for (size_t u = at(start); u < i; ++u) device[at(order[u])] = static_cast<int32_t>(d);
    state = on_cpu ? a * (c + 1) + p - 1 : (a - 1) * (c + 1) + p;
    i = at(start);
  }
  return device;
}

std::vector<int32_t> random_order(const PlacementUnits& units, bool depth_first, Random& random) {
  const size_t n = units.size();
  std::vector<int32_t> waiting(n, 0), ready, order;
  const bool ordered = !units.next.empty();
  for (size_t u = 0; u < n; ++u) {
    waiting[u] = ordered ? static_cast<int32_t>(units.previous[u].size()) : 0;
    if (waiting[u] == 0) ready.push_back(static_cast<int32_t>(u));
  }
  random.shuffle(ready);
  size_t head = 0;
  while (head < ready.size()) {
    int32_t unit = 0;
    if (depth_first) {
      unit = ready.back();
      ready.pop_back();
    } else {
      unit = ready[head++];
    }
    order.push_back(unit);
    if (!ordered) continue;
    auto next = units.next[at(unit)];
    random.shuffle(next);
    for (const auto w : next)
      if (--waiting[at(w)] == 0) ready.push_back(w);
  }
  return order;
}

}  // namespace heddle
