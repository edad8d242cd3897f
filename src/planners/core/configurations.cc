#include "configurations.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

// Sets that are looked at, and those that are kept by each of the two measures.
constexpr size_t kMostSets = 512;
constexpr size_t kMostKept = 6;

// Bron and Kerbosch's enumeration of maximal cliques with a pivot (1973; Tomita et al. 2006), cut off at
// kMostSets.
class Cliques {
 public:
  explicit Cliques(std::vector<std::vector<uint8_t>> compatible) : compatible_(std::move(compatible)) {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < compatible_.size(); ++i) all.push_back(i);
    std::vector<uint32_t> chosen;
    if (!all.empty()) extend(chosen, all, {});
  }
  std::vector<std::vector<uint32_t>> sets;

 private:
  std::vector<uint32_t> neighbours(const std::vector<uint32_t>& of, uint32_t v) const {
    std::vector<uint32_t> out;
    for (const uint32_t w : of) {
      if (compatible_[v][w]) out.push_back(w);
    }
    return out;
  }
  void extend(std::vector<uint32_t>& chosen, std::vector<uint32_t> open, std::vector<uint32_t> closed) {
    if (sets.size() >= kMostSets) return;
    if (open.empty()) {
      if (closed.empty()) sets.push_back(chosen);
      return;
    }
    uint32_t pivot = open[0];
    size_t most = 0;
    for (const auto* list : {&open, &closed}) {
      for (const uint32_t v : *list) {
        const size_t count = neighbours(open, v).size();
        if (count > most) most = count, pivot = v;
      }
    }
    const std::vector<uint32_t> candidates = open;
    for (const uint32_t v : candidates) {
      if (compatible_[pivot][v]) continue;
      chosen.push_back(v);
      extend(chosen, neighbours(open, v), neighbours(closed, v));
      chosen.pop_back();
      open.erase(std::find(open.begin(), open.end(), v));
      closed.push_back(v);
    }
  }
  std::vector<std::vector<uint8_t>> compatible_;
};

bool exchange(const Cluster& cluster, DeviceId a, DeviceId b) {
  return passage(cluster, a, b) != Passage::kNone && passage(cluster, b, a) != Passage::kNone;
}

bool runs_everything(const Problem& problem, const std::vector<DeviceId>& devices) {
  for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
    const auto row = problem.costs->row(OpId(v));
    if (std::none_of(devices.begin(), devices.end(),
                     [&](DeviceId d) { return std::isfinite(row[d.index()]); }))
      return false;
  }
  return true;
}

// Models per us: how fast the device is over the ops that it can run.
double speed_of(const Problem& problem, DeviceId d) {
  double us = 0, ops = 0;
  for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
    const double t = problem.costs->us(OpId(v), d);
    if (std::isfinite(t)) us += t, ops += 1;
  }
  return us > 0 ? ops / us : ops;
}

bool gets_params(const Problem& problem, DeviceId d) {
  return problem.objective != Objective::kColdLatency || !needs_load(*problem.cluster, d) ||
         problem.cluster->load_route(d) != nullptr || problem.graph->num_params() == 0;
}

struct Rated {
  std::vector<DeviceId> devices;
  double total = 0, fastest = 0;
};

std::vector<std::vector<DeviceId>> most_promising(std::vector<Rated> rated) {
  std::vector<std::vector<DeviceId>> kept;
  const auto keep_by = [&](auto measure) {
    std::stable_sort(rated.begin(), rated.end(),
                     [&](const Rated& a, const Rated& b) { return measure(a) > measure(b); });
    for (size_t i = 0; i < rated.size() && i < kMostKept; ++i) {
      if (std::find(kept.begin(), kept.end(), rated[i].devices) == kept.end())
        kept.push_back(rated[i].devices);
    }
  };
  keep_by([](const Rated& r) { return r.total; });
  keep_by([](const Rated& r) { return r.fastest; });
  return kept;
}

}  // namespace

std::vector<std::vector<DeviceId>> configurations(const Problem& problem) {
  const Cluster& cluster = *problem.cluster;
  std::vector<DeviceId> devices;
  for (const DeviceId d : problem.usable_devices()) {
    if (gets_params(problem, d)) devices.push_back(d);
  }
  std::vector<std::vector<uint8_t>> compatible(devices.size(), std::vector<uint8_t>(devices.size(), 0));
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto excluded = cluster.overlaps(devices[i]);
    for (size_t j = 0; j < devices.size(); ++j) {
      const bool apart = std::find(excluded.begin(), excluded.end(), devices[j]) == excluded.end();
      compatible[i][j] = i != j && apart && exchange(cluster, devices[i], devices[j]);
    }
  }
  std::vector<double> speed;
  for (const DeviceId d : devices) speed.push_back(speed_of(problem, d));
  std::vector<Rated> rated;
  for (const auto& set : Cliques(std::move(compatible)).sets) {
    Rated r;
    for (const uint32_t i : set) {
      r.devices.push_back(devices[i]);
      r.total += speed[i];
      r.fastest = std::max(r.fastest, speed[i]);
    }
    std::sort(r.devices.begin(), r.devices.end());
    if (runs_everything(problem, r.devices)) rated.push_back(std::move(r));
  }
  if (rated.empty()) return {problem.usable_devices()};
  return most_promising(std::move(rated));
}

}  // namespace heddle
