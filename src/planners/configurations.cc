#include "configurations.h"

#include <algorithm>

namespace heddle {
namespace {

// Bron and Kerbosch's maximal cliques of the "do not overlap" graph, without pivoting: sets are small.
class Maximal {
 public:
  Maximal(const Problem& problem, std::vector<DeviceId> devices, size_t limit)
      : cluster_(*problem.cluster), devices_(std::move(devices)), limit_(limit) {}

  std::vector<std::vector<DeviceId>> run() {
    extend({}, devices_, {});
    return found_;
  }

 private:
  bool apart(DeviceId a, DeviceId b) const {
    const auto overlaps = cluster_.overlaps(a);
    return std::find(overlaps.begin(), overlaps.end(), b) == overlaps.end();
  }

  std::vector<DeviceId> apart_from(DeviceId d, const std::vector<DeviceId>& from) const {
    std::vector<DeviceId> list;
    for (const auto e : from) {
      if (e != d && apart(d, e)) list.push_back(e);
    }
    return list;
  }

  void extend(std::vector<DeviceId> chosen, std::vector<DeviceId> open, std::vector<DeviceId> closed) {
    if (found_.size() >= limit_) return;
    if (open.empty() && closed.empty()) found_.push_back(chosen);
    while (!open.empty()) {
      const auto d = open.front();
      auto next = chosen;
      next.push_back(d);
      extend(next, apart_from(d, open), apart_from(d, closed));
      open.erase(open.begin());
      closed.push_back(d);
    }
  }

  const Cluster& cluster_;
  std::vector<DeviceId> devices_;
  size_t limit_;
  std::vector<std::vector<DeviceId>> found_;
};

}  // namespace

std::vector<std::vector<DeviceId>> device_configurations(const Problem& problem, size_t limit) {
  const auto usable = problem.usable_devices();
  std::vector<DeviceId> free, contested;
  for (const auto d : usable) {
    const auto overlaps = problem.cluster->overlaps(d);
    const bool contests =
        std::any_of(overlaps.begin(), overlaps.end(), [&](DeviceId e) { return problem.may_use(e); });
    (contests ? contested : free).push_back(d);
  }
  if (contested.empty()) return {usable};
  auto sets = Maximal(problem, contested, limit).run();
  for (auto& set : sets) {
    set.insert(set.end(), free.begin(), free.end());
    std::sort(set.begin(), set.end());
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return sets;
}

}  // namespace heddle
