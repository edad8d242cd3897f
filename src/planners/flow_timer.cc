#include "flow_timer.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr size_t kBlock = 16;

}  // namespace

std::vector<int64_t> least_remaining(const FlowWorkload& w) {
  const size_t k = w.num_devices();
  const FlowAdjacency around(w);
  std::vector<int64_t> remaining(w.num_ops() * k, 0);
  for (size_t v = w.num_ops(); v-- > 0;) {
    for (const uint32_t q : around.out(v)) {
      const uint32_t reader = w.flows[q].to;
      for (uint32_t i = 0; i < k; ++i) {
        int64_t least = kNever;
        for (uint32_t j = 0; j < k; ++j)
          least = std::min(least, w.flow_ticks(q, i, j) + w.ops[reader].ticks[j] + remaining[reader * k + j]);
        remaining[v * k + i] = std::max(remaining[v * k + i], least);
      }
    }
  }
  return remaining;
}

FlowTimer::FlowTimer(const FlowWorkload& w)
    : n_(w.num_ops()), k_(w.num_devices()), remaining_(least_remaining(w)), in_begin_(1, 0) {
  const FlowAdjacency around(w);
  for (size_t v = 0; v < n_; ++v) {
    op_ticks_.insert(op_ticks_.end(), w.ops[v].ticks.begin(), w.ops[v].ticks.end());
    for (const uint32_t q : around.in(v)) in_.push_back(static_cast<uint32_t>(n_) + q);
    in_begin_.push_back(static_cast<uint32_t>(in_.size()));
  }
  for (size_t q = 0; q < w.num_flows(); ++q) {
    flows_.push_back({w.flows[q].from, w.flows[q].to, w.flows[q].precedence});
    for (uint32_t i = 0; i < k_; ++i) {
      for (uint32_t j = 0; j < k_; ++j) flow_ticks_.push_back(w.flow_ticks(q, i, j));
    }
  }
  start_.assign(w.num_tasks(), 0);
  end_.assign(w.num_tasks(), 0);
  const size_t blocks = w.num_tasks() / kBlock + 1;
  kept_.assign(blocks * state_size(), 0);
  now_ = kept_;
  live_.assign(state_size(), 0);
}

int64_t FlowTimer::time(const FlowDecisions& d, int64_t limit, size_t from) {
  first_block_ = from / kBlock;
  last_block_ = first_block_;
  old_.clear();
  const size_t size = state_size();
  std::copy_n(kept_.begin() + static_cast<ptrdiff_t>(first_block_ * size), size, live_.begin());
  int64_t* device_free = live_.data();
  int64_t* egress = device_free + k_;
  int64_t* ingress = egress + k_;
  int64_t& makespan = live_[3 * k_];
  for (size_t i = first_block_ * kBlock; i < d.order.size(); ++i) {
    if (i % kBlock == 0) {
      last_block_ = i / kBlock;
      std::copy_n(live_.begin(), size, now_.begin() + static_cast<ptrdiff_t>(last_block_ * size));
    }
    const uint32_t task = d.order[i];
    int64_t start = 0, end = 0;
    if (task < n_) {
      const uint32_t k = d.device[task];
      start = device_free[k];
      for (uint32_t x = in_begin_[task]; x < in_begin_[task + 1]; ++x) start = std::max(start, end_[in_[x]]);
      end = start + op_ticks_[task * k_ + k];
      device_free[k] = end;
      makespan = std::max(makespan, end);
      if (end + remaining_[task * k_ + k] > limit) {
        old_.push_back({task, start_[task], end_[task]});
        return kNever;
      }
    } else {
      const Flat& f = flows_[task - n_];
      start = end = end_[f.from];
      const uint32_t a = d.device[f.from], b = d.device[f.to];
      if (a != b && !f.precedence) {
        start = std::max({start, egress[a], ingress[b]});
        end = start + flow_ticks_[((task - n_) * k_ + a) * k_ + b];
        egress[a] = ingress[b] = end;
      }
    }
    if (start != start_[task] || end != end_[task]) {
      old_.push_back({task, start_[task], end_[task]});
      start_[task] = start;
      end_[task] = end;
    }
  }
  return makespan > limit ? kNever : makespan;
}

void FlowTimer::keep() {
  const size_t size = state_size();
  const auto first = static_cast<ptrdiff_t>(first_block_ * size);
  const auto last = static_cast<ptrdiff_t>(std::min(now_.size(), (last_block_ + 1) * size));
  std::copy(now_.begin() + first, now_.begin() + last, kept_.begin() + first);
}

void FlowTimer::drop() {
  for (const Old& o : old_) {
    start_[o.task] = o.start;
    end_[o.task] = o.end;
  }
}

std::vector<uint32_t> FlowTimer::critical(const FlowDecisions& d) const {
  // The last task before each on its resources, in the order of the decisions.
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> on_device(k_, kNone), on_egress(k_, kNone), on_ingress(k_, kNone);
  std::vector<uint32_t> waited(n_ + flows_.size(), kNone);
  uint32_t last = kNone;
  for (const uint32_t task : d.order) {
    const auto consider = [&](uint32_t other) {
      if (other != kNone && end_[other] == start_[task] && waited[task] == kNone) waited[task] = other;
    };
    if (task < n_) {
      for (uint32_t x = in_begin_[task]; x < in_begin_[task + 1]; ++x) consider(in_[x]);
      consider(on_device[d.device[task]]);
      on_device[d.device[task]] = task;
      if (last == kNone || end_[task] > end_[last]) last = task;
    } else {
      const Flat& f = flows_[task - n_];
      const uint32_t a = d.device[f.from], b = d.device[f.to];
      consider(f.from);
      if (a == b || f.precedence) continue;
      consider(on_egress[a]);
      consider(on_ingress[b]);
      on_egress[a] = on_ingress[b] = task;
    }
  }
  std::vector<uint32_t> path;
  for (uint32_t task = last; task != kNone; task = waited[task]) path.push_back(task);
  return path;
}

}  // namespace heddle
