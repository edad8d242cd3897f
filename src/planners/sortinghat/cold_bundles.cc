#include "cold_bundles.h"

#include <algorithm>

namespace heddle {
namespace {

// The most ops in a segment, and the most beginnings of one length that are followed.
constexpr size_t kMostBundle = 64, kMostLabels = 12;

// What stands before a place of the order, cut in some way: when the route is free again, when the last run
// ends, and how it came to be.
struct Label {
  double route_us = 0, end_us = 0;
  uint32_t from = 0, label = 0;  // the place and the label before its last segment
  bool in_place = false;
};

// Keeps those that no other one is ahead of in both times; of too many, by even steps of their order.
void prune(std::vector<Label>& labels) {
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
    return a.end_us != b.end_us ? a.end_us < b.end_us : a.route_us < b.route_us;
  });
  std::vector<Label> front;
  for (const Label& l : labels) {
    if (front.empty() || l.route_us < front.back().route_us) front.push_back(l);
  }
  labels.clear();
  const size_t kept = std::min(front.size(), kMostLabels);
  for (size_t i = 0; i < kept; ++i)
    labels.push_back(front[kept == 1 ? 0 : i * (front.size() - 1) / (kept - 1)]);
}

class Bundles {
 public:
  Bundles(const ColdTables& tables, size_t device, const std::vector<uint32_t>& order)
      : t_(tables), flat_(tables.flat()), device_(device), order_(order), bytes_(order.size(), 0) {
    // Each parameter comes with the first op that reads it.
    std::vector<uint8_t> there(flat_.num_params(), 0);
    for (size_t i = 0; i < order_.size(); ++i) {
      for (const uint32_t p : flat_.params(order_[i])) {
        if (there[p] == 0 && !flat_.is_resident(flat_.pool(device), p))
          bytes_[i] = plus_bytes(bytes_[i], flat_.param_bytes(p));
        there[p] = 1;
      }
    }
  }

  std::optional<Assignment> best() {
    const size_t n = order_.size();
    if (n == 0 || t_.ways(device_).empty()) return std::nullopt;
    labels_.resize(n + 1);
    labels_[0].push_back({});
    for (size_t i = 0; i < n; ++i) {
      prune(labels_[i]);
      for (uint32_t l = 0; l < labels_[i].size(); ++l) extend(i, l);
    }
    prune(labels_[n]);
    if (labels_[n].empty()) return std::nullopt;
    return assignment();
  }

 private:
  void extend(size_t i, uint32_t label) {
    const Label at = labels_[i][label];
    const auto& way = t_.ways(device_).front().way;
    const auto from = static_cast<uint32_t>(i);
    int64_t bytes = 0;
    double us = 0;
    for (size_t j = i; j < std::min(order_.size(), i + kMostBundle); ++j) {
      us += flat_.us(order_[j], device_);
      if (!(us < kImpossible)) return;
      bytes = plus_bytes(bytes, bytes_[j]);
      const double there = bytes > 0 ? at.route_us + way.time_us(bytes) : 0;
      labels_[j + 1].push_back({std::max(at.route_us, there), std::max(at.end_us, there) + us, from, label});
    }
    const double in_place = t_.in_place_us(order_[i], device_);
    if (bytes_[i] == 0 || !(in_place < kImpossible)) return;
    const bool holds = !t_.in_place_resources(device_).empty();
    const double end = (holds ? std::max(at.end_us, at.route_us) : at.end_us) + in_place;
    labels_[i + 1].push_back({holds ? end : at.route_us, end, from, label, true});
  }

  Assignment assignment() const {
    const size_t n = order_.size();
    Assignment a;
    a.device.assign(n, flat_.device(device_));
    for (const uint32_t v : order_) a.order.emplace_back(size_t{v});
    a.segment.assign(n, 0);
    a.host_access.assign(n, 0);
    uint32_t label = 0;
    for (size_t end = n; end > 0;) {
      const Label& l = labels_[end][label];
      for (size_t i = l.from; i < end; ++i) {
        a.segment[order_[i]] = static_cast<int>(l.from);
        a.host_access[order_[i]] = l.in_place ? 1 : 0;
      }
      end = l.from;
      label = l.label;
    }
    return a;
  }

  const ColdTables& t_;
  const FlatProblem& flat_;
  const size_t device_;
  const std::vector<uint32_t>& order_;
  std::vector<int64_t> bytes_;  // per place: what its op is the first to read
  std::vector<std::vector<Label>> labels_;
};

}  // namespace

std::optional<Assignment> bundled_on(const ColdTables& tables, size_t device,
                                     const std::vector<uint32_t>& order) {
  return Bundles(tables, device, order).best();
}

}  // namespace heddle
