#include "stage_instance.h"

#include <algorithm>

namespace heddle {
StageInstance::StageInstance(StageInput input)
    : n_(input.ops),
      k_(input.devices),
      width_(input.width),
      us_(std::move(input.us)),
      busy_(us_),
      latency_us_(std::move(input.latency_us)),
      us_per_byte_(std::move(input.us_per_byte)),
      sharing_(std::move(input.sharing)) {
  for (size_t i = 0; i < input.utilization.size(); ++i) {
    if (us_[i] != kNoTime) busy_[i] *= input.utilization[i];
  }
  sharing_.resize(k_, kSimulatedStages);
  for (size_t i = 0; i < k_ * k_; ++i) {
    if (i / k_ == i % k_) latency_us_[i] = us_per_byte_[i] = 0;
    if (latency_us_[i] == kNoTime) us_per_byte_[i] = 0;
  }

  in_begin_.assign(n_ + 1, 0);
  out_begin_.assign(n_ + 1, 0);
  for (const StageEdge& e : input.edges) {
    ++in_begin_[e.to + 1];
    ++out_begin_[e.from + 1];
  }
  for (size_t v = 0; v < n_; ++v) {
    in_begin_[v + 1] += in_begin_[v];
    out_begin_[v + 1] += out_begin_[v];
  }
  in_.resize(input.edges.size());
  out_.resize(input.edges.size());
  std::vector<uint32_t> in_next(in_begin_.begin(), in_begin_.end()),
      out_next(out_begin_.begin(), out_begin_.end());
  for (const StageEdge& e : input.edges) {
    in_[in_next[e.to]++] = {e.from, e.bytes};
    out_[out_next[e.from]++] = {e.to, e.bytes};
  }

  std::vector<uint32_t> waiting(n_);
  for (uint32_t v = 0; v < n_; ++v) {
    waiting[v] = static_cast<uint32_t>(inputs(v).size());
    if (waiting[v] == 0) topological_.push_back(v);
  }
  for (size_t i = 0; i < topological_.size(); ++i) {
    for (const Neighbour& next : outputs(topological_[i])) {
      if (--waiting[next.op] == 0) topological_.push_back(next.op);
    }
  }
}

double StageInstance::stage_us(std::span<const uint32_t> ops, size_t device) const {
  if (ops.size() == 1) return us(ops[0], device);
  double sum = 0, busy = 0, longest = 0;
  for (const uint32_t v : ops) {
    const double t = us(v, device);
    sum += t;
    busy += busy_us(v, device);
    longest = std::max(longest, t);
  }
  if (ops.empty() || sum == kNoTime) return sum;
  return sharing_[device].us(sum, busy, longest);
}

}  // namespace heddle
