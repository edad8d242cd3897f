// Rules of placement, and the transfers that runs do themselves.
#include <algorithm>

#include "checker_state.h"

namespace heddle {
namespace {

using DeviceGraph = std::map<int, std::set<int>>;  // the devices behind each device

// Removes devices with nothing before them until none is left; the devices that stay are on or behind a cycle.
bool is_acyclic(const DeviceGraph& behind) {
  std::map<int, int> entering;
  for (const auto& [device, next] : behind) {
    entering[device];
    for (const int other : next) ++entering[other];
  }
  std::vector<int> free;
  for (const auto& [device, count] : entering) {
    if (count == 0) free.push_back(device);
  }
  size_t removed = 0;
  while (!free.empty()) {
    const int device = free.back();
    free.pop_back();
    ++removed;
    const auto found = behind.find(device);
    if (found == behind.end()) continue;
    for (const int other : found->second) {
      if (--entering[other] == 0) free.push_back(other);
    }
  }
  return removed == entering.size();
}

}  // namespace

void PlanChecker::check_rules() {
  if (problem_.rules == nullptr) return;
  const auto& places = place_.front();
  const bool complete = std::none_of(places.begin(), places.end(), [](int place) { return place < 0; });
  if (!complete) return;  // reported elsewhere
  check_colours();
  if (problem_.rules->contiguous) check_contiguous();
  if (problem_.rules->most_segments > 0) check_segment_counts();
}

void PlanChecker::check_colours() {
  if (problem_.rules->colour.empty()) return;
  for (const auto& places : place_) {
    std::map<int32_t, size_t> first;
    for (size_t v = 0; v < graph_.num_ops(); ++v) {
      const int32_t colour = problem_.rules->colour[v];
      if (colour < 0) continue;
      const size_t u = first.emplace(colour, v).first->second;
      const DeviceId here = plan_.segments[static_cast<size_t>(places[v])].device;
      const DeviceId there = plan_.segments[static_cast<size_t>(places[u])].device;
      if (here == there) continue;
      report(Violation::kPlacement, "ops '" + graph_.ops()[v].name + "' and '" + graph_.ops()[u].name +
                                        "' have one colour but devices '" + cluster_.device(here).name +
                                        "' and '" + cluster_.device(there).name + "'");
    }
  }
}

void PlanChecker::check_contiguous() {
  const PlacementRules& rules = *problem_.rules;
  const auto is_backward = [&](OpId op) {
    return !rules.backward.empty() && rules.backward[op.index()] != 0;
  };
  const auto colour = [&](OpId op) { return rules.colour.empty() ? -1 : rules.colour[op.index()]; };
  std::set<int32_t> forward_colours;
  for (size_t v = 0; v < graph_.num_ops(); ++v) {
    if (!is_backward(OpId(v)) && colour(OpId(v)) >= 0) forward_colours.insert(colour(OpId(v)));
  }
  const auto is_orphan = [&](OpId op) { return forward_colours.count(colour(op)) == 0; };
  for (const auto& places : place_) {
    DeviceGraph behind;
    for (const Edge& e : graph_.edges()) {
      const int from = plan_.segments[static_cast<size_t>(places[e.src.index()])].device.value;
      const int to = plan_.segments[static_cast<size_t>(places[e.dst.index()])].device.value;
      if (from == to) continue;
      const bool both_backward = is_backward(e.src) && is_backward(e.dst);
      if (!is_backward(e.src) && !is_backward(e.dst)) behind[from].insert(to);
      if (both_backward && (is_orphan(e.src) || is_orphan(e.dst))) behind[to].insert(from);
    }
    if (!is_acyclic(behind))
      report(Violation::kPlacement, "not contiguous: the devices' forward ops cannot be ordered");
  }
}

void PlanChecker::check_segment_counts() {
  std::map<std::pair<int, int>, int> count;  // (lane, device)
  for (const Segment& segment : plan_.segments) {
    if (cluster_.device(segment.device).kind == DeviceKind::kCpu) continue;
    if (++count[{segment.lane, segment.device.value}] == problem_.rules->most_segments + 1)
      report(Violation::kPlacement, "device '" + cluster_.device(segment.device).name + "' has more than " +
                                        std::to_string(problem_.rules->most_segments) + " segments");
  }
}

// The time in which run i moves tensors in and out: each once, over the border of its segment, or of its device where a
// stream of requests is planned. Runs are asked for in the plan's order.
double PlanChecker::moves_us(size_t i) {
  const Segment& segment = segment_of(i);
  if (cluster_.device(segment.device).kind == DeviceKind::kCpu) return 0;
  const bool stream = problem_.objective == Objective::kThroughput;
  const auto& places = place_[static_cast<size_t>(segment.lane)];
  const auto is_here = [&](OpId op) {
    const int place = places[op.index()];
    if (place == plan_.steps[i].segment.value || place < 0) return true;
    return stream && plan_.segments[static_cast<size_t>(place)].device == segment.device;
  };
  std::set<TensorId> in, out;
  for (const OpId op : segment.ops) {
    for (const TensorId t : graph_.op(op).inputs) {
      const OpId maker = graph_.tensor(t).producer;
      if (maker.valid() && !is_here(maker)) in.insert(t);
    }
    for (const TensorId t : graph_.op(op).outputs) {
      const auto& readers = graph_.tensor(t).consumers;
      if (!std::all_of(readers.begin(), readers.end(), is_here)) out.insert(t);
    }
  }
  double sum = 0;
  for (const TensorId t : in) {
    if (!stream || moved_in_.insert({t.value, segment.device.value}).second)
      sum += problem_.transfers->us[t.index()];
  }
  for (const TensorId t : out) sum += problem_.transfers->us[t.index()];
  return sum;
}

}  // namespace heddle
