#include "flow_timer.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr size_t kBlock = 16;

}  // namespace

FlowTimer::FlowTimer(const FlowWorkload& w)
    : n_(w.num_ops()),
      k_(w.num_devices()),
      tasks_(w.num_tasks()),
      blocks_(w.num_tasks() / kBlock + 1),
      forward_(3 * k_ + 1),
      backward_(3 * k_),
      around_(w),
      remaining_(least_remaining(w)) {
  for (const FlowOp& op : w.ops) op_ticks_.insert(op_ticks_.end(), op.ticks.begin(), op.ticks.end());
  for (size_t q = 0; q < w.num_flows(); ++q) {
    flows_.push_back({w.flows[q].from, w.flows[q].to, w.flows[q].precedence});
    for (uint32_t i = 0; i < k_; ++i) {
      for (uint32_t j = 0; j < k_; ++j) flow_ticks_.push_back(w.flow_ticks(q, i, j));
    }
  }
  place_.assign(tasks_, 0);
  start_.assign(tasks_, 0);
  end_.assign(tasks_, 0);
  tail_.assign(tasks_, 0);
  heads_.assign(blocks_ * forward_, 0);
  heads_now_ = heads_;
  tails_.assign((blocks_ + 1) * backward_, 0);
  block_end_.assign(blocks_, 0);
  block_end_now_ = block_end_;
  live_.assign(forward_, 0);
}

int64_t FlowTimer::restart(const FlowDecisions& d) {
  const int64_t value = time(d, kNever - 1);
  keep();
  return value;
}

uint32_t FlowTimer::furthest_reader(uint32_t task) const {
  if (task >= n_) return place_[flows_[task - n_].to];
  uint32_t far = 0;
  for (const uint32_t q : around_.out(task)) far = std::max(far, place_[n_ + q]);
  return far;
}

uint32_t FlowTimer::nearest_source(uint32_t task) const {
  if (task >= n_) return place_[flows_[task - n_].from];
  uint32_t first = UINT32_MAX;
  for (const uint32_t q : around_.in(task)) first = std::min(first, place_[n_ + q]);
  return first;
}

// Everything from this block on is as it was.
int64_t FlowTimer::finish_converged(size_t block, int64_t so_far, int64_t limit) {
  for (size_t b = block; b < blocks_; ++b) so_far = std::max(so_far, block_end_[b]);
  makespan_now_ = so_far;
  timed_to_ = block;
  return so_far > limit ? kNever : so_far;
}

int64_t FlowTimer::time(const FlowDecisions& d, int64_t limit, size_t first, size_t last) {
  last = std::min(last, tasks_ - 1);
  timed_ = &d;
  first_ = first;
  last_ = last;
  const size_t first_block = first / kBlock;
  old_.clear();
  std::copy_n(heads_.begin() + static_cast<ptrdiff_t>(first_block * forward_), forward_, live_.begin());
  int64_t* device_free = live_.data();
  int64_t* egress = device_free + k_;
  int64_t* ingress = egress + k_;
  int64_t& makespan = live_[3 * k_];
  size_t reach = last;  // places up to here may still see a change
  for (size_t i = first_block * kBlock; i < tasks_; ++i) {
    if (i % kBlock == 0) {
      const size_t b = i / kBlock;
      const auto kept = heads_.begin() + static_cast<ptrdiff_t>(b * forward_);
      if (i > last) {
        const int64_t* after = tails_.data() + b * backward_;
        for (size_t r = 0; r < backward_; ++r) {
          if (live_[r] + after[r] > limit) return kNever;
        }
        if (i > reach && std::equal(live_.begin(), live_.end() - 1, kept))
          return finish_converged(b, makespan, limit);
      }
      std::copy(live_.begin(), live_.end(), heads_now_.begin() + static_cast<ptrdiff_t>(b * forward_));
      block_end_now_[b] = 0;
    }
    const uint32_t task = d.order[i];
    int64_t start = 0, end = 0;
    if (task < n_) {
      const uint32_t k = d.device[task];
      start = device_free[k];
      for (const uint32_t q : around_.in(task)) start = std::max(start, end_[n_ + q]);
      end = start + op_ticks_[task * k_ + k];
      device_free[k] = end;
      makespan = std::max(makespan, end);
      block_end_now_[i / kBlock] = std::max(block_end_now_[i / kBlock], end);
      if (end + (i > last ? tail_[task] : remaining_[task * k_ + k]) > limit) return kNever;
    } else {
      const Ends& f = flows_[task - n_];
      start = end = end_[f.from];
      const uint32_t a = d.device[f.from], b = d.device[f.to];
      if (a != b && !f.precedence) {
        start = std::max({start, egress[a], ingress[b]});
        end = start + flow_ticks_[((task - n_) * k_ + a) * k_ + b];
        egress[a] = ingress[b] = end;
      }
      if (i > last && end + tail_[task] > limit) return kNever;
    }
    if (start != start_[task] || end != end_[task]) {
      if (end != end_[task]) reach = std::max<size_t>(reach, furthest_reader(task));
      old_.push_back({task, start_[task], end_[task]});
      start_[task] = start;
      end_[task] = end;
    }
  }
  timed_to_ = blocks_;
  makespan_now_ = makespan;
  return makespan > limit ? kNever : makespan;
}

int64_t FlowTimer::weight(uint32_t task, const FlowDecisions& d) const {
  if (task < n_) return op_ticks_[task * k_ + d.device[task]] + tail_[task];
  const Ends& f = flows_[task - n_];
  const uint32_t a = d.device[f.from], b = d.device[f.to];
  const bool crosses = a != b && !f.precedence;
  return (crosses ? flow_ticks_[((task - n_) * k_ + a) * k_ + b] : 0) + tail_[task];
}

// Backward from the block behind the last change; ends where state and tails are as they were.
void FlowTimer::time_tails() {
  const FlowDecisions& d = *timed_;
  size_t b = last_ / kBlock;
  std::vector<int64_t>& state = live_;
  std::copy_n(tails_.begin() + static_cast<ptrdiff_t>((b + 1) * backward_), backward_, state.begin());
  int64_t* device = state.data();
  int64_t* egress = device + k_;
  int64_t* ingress = egress + k_;
  size_t reach = first_;  // places down to here may still see a change
  for (size_t i = std::min(tasks_, (b + 1) * kBlock); i-- > 0;) {
    const uint32_t task = d.order[i];
    int64_t tail = 0;
    if (task < n_) {
      const uint32_t k = d.device[task];
      tail = device[k];
      for (const uint32_t q : around_.out(task))
        tail = std::max(tail, weight(static_cast<uint32_t>(n_) + q, d));
      device[k] = op_ticks_[task * k_ + k] + tail;
    } else {
      const Ends& f = flows_[task - n_];
      const uint32_t a = d.device[f.from], to = d.device[f.to];
      tail = weight(f.to, d);
      if (a != to && !f.precedence) {
        tail = std::max({tail, egress[a], ingress[to]});
        egress[a] = ingress[to] = flow_ticks_[((task - n_) * k_ + a) * k_ + to] + tail;
      }
    }
    if (tail != tail_[task]) {
      reach = std::min<size_t>(reach, nearest_source(task));
      tail_[task] = tail;
    }
    if (i % kBlock == 0) {
      b = i / kBlock;
      const auto kept = tails_.begin() + static_cast<ptrdiff_t>(b * backward_);
      if (i <= reach && std::equal(kept, kept + static_cast<ptrdiff_t>(backward_), state.begin())) return;
      std::copy_n(state.begin(), backward_, kept);
    }
  }
}

void FlowTimer::keep() {
  for (size_t i = first_; i <= last_; ++i) place_[timed_->order[i]] = static_cast<uint32_t>(i);
  const size_t begin = first_ / kBlock, end = std::min(timed_to_, blocks_);
  std::copy(heads_now_.begin() + static_cast<ptrdiff_t>(begin * forward_),
            heads_now_.begin() + static_cast<ptrdiff_t>(end * forward_),
            heads_.begin() + static_cast<ptrdiff_t>(begin * forward_));
  std::copy(block_end_now_.begin() + static_cast<ptrdiff_t>(begin),
            block_end_now_.begin() + static_cast<ptrdiff_t>(end),
            block_end_.begin() + static_cast<ptrdiff_t>(begin));
  // The makespan so far of the blocks behind is only part of the state that convergence leaves out.
  for (size_t b = std::max<size_t>(end, 1); b < blocks_; ++b) {
    int64_t& so_far = heads_[b * forward_ + 3 * k_];
    const int64_t value = std::max(heads_[(b - 1) * forward_ + 3 * k_], block_end_[b - 1]);
    if (value == so_far) break;
    so_far = value;
  }
  makespan_ = makespan_now_;
  time_tails();
}

void FlowTimer::drop() {
  for (size_t i = old_.size(); i-- > 0;) {
    start_[old_[i].task] = old_[i].start;
    end_[old_[i].task] = old_[i].end;
  }
}

FlowSchedule time_flows(const FlowWorkload& w, const FlowDecisions& d) {
  FlowTimer timer(w);
  FlowSchedule s;
  s.device = d.device;
  s.makespan = timer.restart(d);
  const auto n = static_cast<uint32_t>(w.num_ops());
  for (uint32_t v = 0; v < n; ++v) s.op_start.push_back(timer.start(v));
  for (uint32_t q = 0; q < w.num_flows(); ++q) s.flow_start.push_back(timer.start(n + q));
  return s;
}

}  // namespace heddle
