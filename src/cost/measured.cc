#include <algorithm>
#include <map>

#include "heddle/cost/cost_model.h"
#include "heddle/cost/profile_store.h"

namespace heddle {
namespace {

struct Point {
  double x = 0;
  Cost cost;
};

// Linear between the two points around x (sorted by x); exact at a point; nullopt outside.
std::optional<Cost> interpolate(const std::vector<Point>& points, double x) {
  const auto right =
      std::lower_bound(points.begin(), points.end(), x, [](const Point& p, double v) { return p.x < v; });
  if (right == points.end()) return std::nullopt;
  if (right->x == x) return right->cost;
  if (right == points.begin()) return std::nullopt;
  const auto left = right - 1;
  const double f = (x - left->x) / (right->x - left->x);
  return Cost{.us = left->cost.us + f * (right->cost.us - left->cost.us),
              .origin = Origin::kInterpolated,
              .rel_spread = std::max(left->cost.rel_spread, right->cost.rel_spread)};
}

Cost measured(const ProfileRecord& r) {
  return {.us = r.median_us, .origin = Origin::kMeasured, .rel_spread = r.rel_spread};
}

class MeasuredModel final : public CostModel {
 public:
  MeasuredModel(std::shared_ptr<const ProfileStore> store, SignatureFn signature)
      : store_(std::move(store)), signature_(std::move(signature)) {}

  std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                              const CostContext& context) const override {
    if (device.target.empty() || ops.empty()) return std::nullopt;
    const ProfileKey key{.signature = signature_(finest(graph, ops)),
                         .target = device.target,
                         .batch = context.batch,
                         .share = context.share};
    const auto exact = store_->find(key);
    if (!exact.ok()) return std::nullopt;
    // Do not divide by `speed`: the hardware was measured as it is.
    if (*exact) return measured(**exact);
    return between_neighbours(key);
  }

 private:
  static std::vector<OpId> finest(const Graph& graph, std::span<const OpId> ops) {
    std::vector<OpId> all;
    for (OpId id : ops) {
      const auto& members = graph.op(id).members;
      if (members.empty())
        all.push_back(id);
      else
        all.insert(all.end(), members.begin(), members.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  std::optional<Cost> between_neighbours(const ProfileKey& key) const {
    const auto records = store_->find_segment(key.signature, key.target);
    if (!records.ok()) return std::nullopt;
    std::map<double, std::vector<Point>> by_share;
    for (const ProfileRecord& r : *records)
      by_share[r.key.share].push_back({static_cast<double>(r.key.batch), measured(r)});
    if (const auto it = by_share.find(key.share); it != by_share.end()) {
      if (const auto cost = interpolate(it->second, key.batch)) return cost;
    }
    std::vector<Point> points;  // at this batch, as a function of 1/share: half a device takes twice as long
    for (auto it = by_share.rbegin(); it != by_share.rend(); ++it) {
      if (const auto cost = interpolate(it->second, key.batch)) points.push_back({1 / it->first, *cost});
    }
    return interpolate(points, 1 / key.share);
  }

  std::shared_ptr<const ProfileStore> store_;
  SignatureFn signature_;
};

}  // namespace

std::unique_ptr<CostModel> measured_cost_model(std::shared_ptr<const ProfileStore> store,
                                               SignatureFn signature) {
  return std::make_unique<MeasuredModel>(std::move(store), std::move(signature));
}

}  // namespace heddle
