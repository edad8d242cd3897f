#include "lp_windows.h"

#include <algorithm>
#include <cmath>

#include "heddle/cost/cost.h"

namespace heddle {
namespace {

// Candidates for a, so many of the heads; every tail is a candidate for b.
constexpr size_t kMostHeads = 200;
// Relative to T: what a row must be violated by.
constexpr double kWindowViolation = 1e-5;

struct Item {
  size_t at;  // op x device
  double head, tail, us, work;
};

}  // namespace

LpWindows::LpWindows(const Relaxation& relaxation, double known_us)
    : r_(relaxation),
      n_(relaxation.devices.empty() ? 0 : relaxation.time.size() / relaxation.devices.size()),
      k_(relaxation.devices.size()),
      known_us_(known_us) {}

int LpWindows::add_rows(std::span<const double> values, std::span<const Var> placement, Var total,
                        double unit_us, Milp& milp) const {
  const double now = values[static_cast<size_t>(total.index)] * unit_us;
  // The rows hold where T >= a + b, which only a bound can promise: where the window's devices stay empty the
  // row says no more than that.
  const double most = known_us_;
  int added = 0;
  for (const auto& set : r_.exclusive) {
    std::vector<Item> items;
    for (size_t v = 0; v < n_; ++v) {
      for (const uint32_t i : set) {
        const size_t at = v * k_ + i;
        const double us = r_.time[at];
        if (!std::isfinite(us) || !std::isfinite(r_.earliest_finish[at]) || !std::isfinite(r_.remaining[at]))
          continue;
        const double x = std::clamp(values[static_cast<size_t>(placement[at].index)], 0.0, 1.0);
        items.push_back({at, std::max(0.0, r_.earliest_finish[at] - us), std::max(0.0, r_.remaining[at] - us),
                         us, us * x});
      }
    }
    std::sort(items.begin(), items.end(),
              [](const Item& p, const Item& q) { return p.tail != q.tail ? p.tail > q.tail : p.at < q.at; });
    std::vector<double> heads{0};
    for (const Item& item : items) {
      if (item.work > 0) heads.push_back(item.head);
    }
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    const size_t stride = heads.size() / kMostHeads + 1;
    double best = now * (1 + kWindowViolation), best_a = 0, best_b = 0;
    for (size_t h = 0; h < heads.size(); h += stride) {
      const double a = heads[h];
      double sum = a;
      for (size_t j = 0; j < items.size(); ++j) {
        if (items[j].head >= a) sum += items[j].work;
        const double b = items[j].tail;
        if (a + b > most || (j + 1 < items.size() && items[j + 1].tail == b)) continue;
        if (sum + b > best) {
          best = sum + b;
          best_a = a;
          best_b = b;
        }
      }
    }
    if (!(best > now * (1 + kWindowViolation)) || best_a + best_b <= 0) continue;
    std::vector<Term> row{{total, 1}};
    for (const Item& item : items) {
      if (item.head >= best_a && item.tail >= best_b && item.us > 0)
        row.push_back({placement[item.at], -item.us / unit_us});
    }
    milp.at_least(std::move(row), (best_a + best_b) / unit_us);
    ++added;
  }
  return added;
}

}  // namespace heddle
