#include "list_pass.h"

#include <algorithm>

namespace heddle {

ListPass::ListPass(const Problem& problem)
    : graph_(*problem.graph),
      costs_(problem),
      number_(problem.cluster->num_devices(), 0),
      finish_(problem.graph->num_ops()) {
  for (size_t d = 0; d < costs_.num_devices(); ++d) number_[costs_.device(d).index()] = d;
}

double ListPass::makespan(const Assignment& assignment) {
  free_.assign(static_cast<size_t>(costs_.num_resources()), 0);
  std::fill(finish_.begin(), finish_.end(), 0);
  double last = 0;
  // finish_ of a later op collects when its inputs arrive, until the op itself is reached.
  for (const auto v : assignment.order) {
    const auto d = number_[assignment.device[v.index()].index()];
    double start = finish_[v.index()];
    for (const int r : costs_.resources(d)) start = std::max(start, free_[static_cast<size_t>(r)]);
    const double finish = start + costs_.us(v, d);
    for (const int r : costs_.resources(d)) free_[static_cast<size_t>(r)] = finish;
    finish_[v.index()] = finish;
    last = std::max(last, finish);
    for (const auto& e : graph_.out_edges(v)) {
      const auto to = number_[assignment.device[e.dst.index()].index()];
      const double arrives = to == d ? finish : finish + costs_.transfer_us(d, to, e.bytes);
      auto& ready = finish_[e.dst.index()];
      ready = std::max(ready, arrives);
    }
  }
  return last;
}

}  // namespace heddle
