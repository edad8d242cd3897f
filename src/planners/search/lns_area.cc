#include "lns_area.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr double kFirstSize = 12, kLeastSize = 4;
constexpr double kGrow = 1.2, kShrink = 0.8;
// Share of a new observation in a kind's weight, and the weight that is always left to try it.
constexpr double kNew = 0.1, kLeastWeight = 0.05;
// Ops of a window in which some are free, per free op.
constexpr size_t kStretch = 4;
constexpr size_t kMostWindow = 160;
constexpr double kFromCritical = 0.8;
constexpr size_t kMostInModule = 12;

class AreaDraw {
 public:
  AreaDraw(const FlatProblem& flat, const TimedPlan& timed, const std::vector<uint32_t>& critical,
           const std::vector<uint32_t>& place, size_t size, Random& random)
      : flat_(flat),
        plan_(*timed.plan),
        timed_(timed),
        critical_(critical),
        place_(place),
        size_(std::min(size, flat.num_ops())),
        random_(random) {
    const bool from_critical = !critical_.empty() && random_.chance(kFromCritical);
    centre_ = from_critical ? critical_[random_.below(critical_.size())]
                            : static_cast<uint32_t>(random_.below(flat_.num_ops()));
  }

  Neighbourhood time() {
    stretch(size_);
    for_window([&](uint32_t v) { area_.free.push_back(v); });
    return area_;
  }

  Neighbourhood critical() {
    stretch(std::min(kMostWindow, kStretch * size_));
    std::vector<uint8_t> hot(area_.last - area_.first, 0);
    for (const uint32_t v : critical_) {
      if (in_window(v)) hot[place_[v] - area_.first] = 1;
    }
    // Those that could start least later come first: a short wait before their readers.
    std::vector<std::pair<double, uint32_t>> by_slack;
    for_window([&](uint32_t v) {
      double next = timed_.makespan_us;
      for (const uint32_t t : flat_.outputs(v)) {
        for (const uint32_t w : flat_.readers(t)) next = std::min(next, (*timed_.start)[w]);
      }
      const double slack = hot[place_[v] - area_.first]
                               ? -1 - random_.unit()
                               : (next - (*timed_.finish)[v]) * (0.5 + random_.unit());
      by_slack.push_back({slack, v});
    });
    const size_t most = std::min(size_, by_slack.size());
    std::partial_sort(by_slack.begin(), by_slack.begin() + static_cast<long>(most), by_slack.end());
    for (size_t i = 0; i < most; ++i) area_.free.push_back(by_slack[i].second);
    return area_;
  }

  Neighbourhood devices() {
    if (flat_.num_devices() < 2) return {};
    const uint32_t a = plan_.device[centre_];
    auto b = static_cast<uint32_t>(random_.below(flat_.num_devices() - 1));
    b += b >= a ? 1 : 0;
    area_.devices = {std::min(a, b), std::max(a, b)};
    stretch(std::min(kMostWindow, kStretch * size_));
    for_window([&](uint32_t v) {
      if (area_.free.size() < size_ && (plan_.device[v] == a || plan_.device[v] == b))
        area_.free.push_back(v);
    });
    return area_;
  }

  Neighbourhood subgraph() {
    stretch(std::min(kMostWindow, kStretch * size_));
    std::vector<uint8_t> seen(area_.last - area_.first, 0);
    const auto visit = [&](uint32_t v) {
      if (!in_window(v) || area_.free.size() >= size_) return;
      uint8_t& mark = seen[place_[v] - area_.first];
      if (!mark) area_.free.push_back(v);
      mark = 1;
    };
    visit(centre_);
    for (size_t i = 0; i < area_.free.size() && area_.free.size() < size_; ++i) {
      const uint32_t v = area_.free[i];
      for (const uint32_t t : flat_.inputs(v)) {
        visit(flat_.producer(t));
        for (const uint32_t w : flat_.readers(t)) visit(w);
      }
      for (const uint32_t t : flat_.outputs(v)) {
        for (const uint32_t w : flat_.readers(t)) visit(w);
      }
    }
    return area_;
  }

  Neighbourhood modules() {
    stretch(std::min(kMostWindow, kStretch * size_));
    const size_t most = std::max<size_t>(2, size_ / 2);
    std::vector<uint32_t> unit(area_.last - area_.first, UINT32_MAX), length;
    for_window([&](uint32_t v) {
      uint32_t& mine = unit[place_[v] - area_.first];
      for (const uint32_t t : flat_.inputs(v)) {
        const uint32_t u = flat_.producer(t);
        if (!in_window(u) || plan_.device[u] != plan_.device[v]) continue;
        const uint32_t theirs = unit[place_[u] - area_.first];
        if (length[theirs] >= kMostInModule) continue;
        mine = theirs;
        break;
      }
      if (mine == UINT32_MAX) mine = static_cast<uint32_t>(length.size()), length.push_back(0);
      ++length[mine];
    });
    // A stretch of the modules, so that those that are free are neighbours.
    const size_t modules = length.size();
    const size_t first = modules > most ? random_.below(modules - most + 1) : 0;
    for_window([&](uint32_t v) {
      const uint32_t mine = unit[place_[v] - area_.first];
      if (mine < first || mine >= first + most) return;
      area_.free.push_back(v);
      area_.unit.push_back(mine);
    });
    return area_;
  }

 private:
  bool in_window(uint32_t v) const { return place_[v] >= area_.first && place_[v] < area_.last; }
  // So many places around the centre, at a random offset.
  void stretch(size_t length) {
    const size_t n = flat_.num_ops();
    length = std::min(length, n);
    const size_t at = place_[centre_], before = random_.below(length);
    area_.first = std::min(at > before ? at - before : 0, n - length);
    area_.last = area_.first + length;
  }
  template <class Visit>
  void for_window(const Visit& visit) {
    for (size_t i = area_.first; i < area_.last; ++i) visit(plan_.order[i]);
  }

  const FlatProblem& flat_;
  const FlatPlan& plan_;
  const TimedPlan& timed_;
  const std::vector<uint32_t>& critical_;
  const std::vector<uint32_t>& place_;
  const size_t size_;
  Random& random_;
  uint32_t centre_ = 0;
  Neighbourhood area_;
};

}  // namespace

AreaChoice::AreaChoice(size_t most) : most_(std::max(kLeastSize, static_cast<double>(most))) {
  for (Record& r : records_) r.size = std::min(most_, kFirstSize);
}

AreaKind AreaChoice::draw(Random& random) const {
  double sum = 0;
  for (const Record& r : records_) sum += r.weight;
  double at = random.unit() * sum;
  for (size_t i = 0; i + 1 < records_.size(); ++i) {
    at -= records_[i].weight;
    if (at < 0) return static_cast<AreaKind>(i);
  }
  return static_cast<AreaKind>(records_.size() - 1);
}

size_t AreaChoice::size(AreaKind kind) const {
  return static_cast<size_t>(records_[static_cast<size_t>(kind)].size);
}

void AreaChoice::learn(AreaKind kind, bool better, bool complete) {
  Record& r = records_[static_cast<size_t>(kind)];
  r.weight = std::max(kLeastWeight, (1 - kNew) * r.weight + kNew * (better ? 1 : 0));
  if (!complete)
    r.size = std::max(kLeastSize, r.size * kShrink);
  else if (!better)
    r.size = std::min(most_, r.size * kGrow);
}

Neighbourhood draw_area(const FlatProblem& flat, const TimedPlan& timed,
                        const std::vector<uint32_t>& critical, const std::vector<uint32_t>& place,
                        AreaKind kind, size_t size, Random& random) {
  AreaDraw area(flat, timed, critical, place, size, random);
  switch (kind) {
    case AreaKind::kTime:
      return area.time();
    case AreaKind::kCritical:
      return area.critical();
    case AreaKind::kDevices:
      return area.devices();
    case AreaKind::kSubgraph:
      return area.subgraph();
    case AreaKind::kModules:
      break;
  }
  return area.modules();
}

}  // namespace heddle
