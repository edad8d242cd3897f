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
    : n_(w.num_ops()),
      k_(w.num_devices()),
      tasks_(w.num_tasks()),
      blocks_(w.num_tasks() / kBlock + 1),
      forward_(3 * k_ + 1),
      backward_(3 * k_),
      remaining_(least_remaining(w)),
      in_begin_(1, 0),
      out_begin_(1, 0) {
  const FlowAdjacency around(w);
  for (size_t v = 0; v < n_; ++v) {
    op_ticks_.insert(op_ticks_.end(), w.ops[v].ticks.begin(), w.ops[v].ticks.end());
    for (const uint32_t q : around.in(v)) in_.push_back(static_cast<uint32_t>(n_) + q);
    for (const uint32_t q : around.out(v)) out_.push_back(static_cast<uint32_t>(n_) + q);
    in_begin_.push_back(static_cast<uint32_t>(in_.size()));
    out_begin_.push_back(static_cast<uint32_t>(out_.size()));
  }
  for (size_t q = 0; q < w.num_flows(); ++q) {
    flows_.push_back({w.flows[q].from, w.flows[q].to, w.flows[q].precedence});
    for (uint32_t i = 0; i < k_; ++i) {
      for (uint32_t j = 0; j < k_; ++j) flow_ticks_.push_back(w.flow_ticks(q, i, j));
    }
  }
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

int64_t FlowTimer::restart(const FlowDecisions& d, const std::vector<uint32_t>& place) {
  makespan_ = 0;
  const int64_t value = time(d, place, kNever - 1, 0, tasks_ - 1);
  keep(d, place);
  return value;
}

uint32_t FlowTimer::furthest_reader(uint32_t task, const std::vector<uint32_t>& place) const {
  if (task >= n_) return place[flows_[task - n_].to];
  uint32_t far = 0;
  for (uint32_t x = out_begin_[task]; x < out_begin_[task + 1]; ++x) far = std::max(far, place[out_[x]]);
  return far;
}

uint32_t FlowTimer::nearest_source(uint32_t task, const std::vector<uint32_t>& place) const {
  if (task >= n_) return place[flows_[task - n_].from];
  uint32_t first = UINT32_MAX;
  for (uint32_t x = in_begin_[task]; x < in_begin_[task + 1]; ++x) first = std::min(first, place[in_[x]]);
  return first;
}

// Everything from this block on is as it was.
int64_t FlowTimer::finish_converged(size_t block, int64_t so_far, int64_t limit) {
  for (size_t b = block; b < blocks_; ++b) so_far = std::max(so_far, block_end_[b]);
  makespan_now_ = so_far;
  timed_to_ = block;
  return so_far > limit ? kNever : so_far;
}

int64_t FlowTimer::time(const FlowDecisions& d, const std::vector<uint32_t>& place, int64_t limit,
                        size_t first, size_t last) {
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
      for (uint32_t x = in_begin_[task]; x < in_begin_[task + 1]; ++x) start = std::max(start, end_[in_[x]]);
      end = start + op_ticks_[task * k_ + k];
      device_free[k] = end;
      makespan = std::max(makespan, end);
      block_end_now_[i / kBlock] = std::max(block_end_now_[i / kBlock], end);
      if (end + (i > last ? tail_[task] : remaining_[task * k_ + k]) > limit) return kNever;
    } else {
      const Flat& f = flows_[task - n_];
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
      if (end != end_[task]) reach = std::max<size_t>(reach, furthest_reader(task, place));
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
  const Flat& f = flows_[task - n_];
  const uint32_t a = d.device[f.from], b = d.device[f.to];
  const bool crosses = a != b && !f.precedence;
  return (crosses ? flow_ticks_[((task - n_) * k_ + a) * k_ + b] : 0) + tail_[task];
}

// Backward from the block behind the last change; ends where state and tails are as they were.
void FlowTimer::time_tails(const FlowDecisions& d, const std::vector<uint32_t>& place, size_t first,
                           size_t last) {
  size_t b = last / kBlock;
  std::vector<int64_t>& state = live_;
  std::copy_n(tails_.begin() + static_cast<ptrdiff_t>((b + 1) * backward_), backward_, state.begin());
  int64_t* device = state.data();
  int64_t* egress = device + k_;
  int64_t* ingress = egress + k_;
  size_t reach = first;  // places down to here may still see a change
  for (size_t i = std::min(tasks_, (b + 1) * kBlock); i-- > 0;) {
    const uint32_t task = d.order[i];
    int64_t tail = 0;
    if (task < n_) {
      const uint32_t k = d.device[task];
      tail = device[k];
      for (uint32_t x = out_begin_[task]; x < out_begin_[task + 1]; ++x)
        tail = std::max(tail, weight(out_[x], d));
      device[k] = op_ticks_[task * k_ + k] + tail;
    } else {
      const Flat& f = flows_[task - n_];
      const uint32_t a = d.device[f.from], to = d.device[f.to];
      tail = weight(f.to, d);
      if (a != to && !f.precedence) {
        tail = std::max({tail, egress[a], ingress[to]});
        egress[a] = ingress[to] = flow_ticks_[((task - n_) * k_ + a) * k_ + to] + tail;
      }
    }
    if (tail != tail_[task]) {
      reach = std::min<size_t>(reach, nearest_source(task, place));
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

void FlowTimer::keep(const FlowDecisions& d, const std::vector<uint32_t>& place) {
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
  time_tails(d, place, first_, last_);
}

void FlowTimer::drop() {
  for (size_t i = old_.size(); i-- > 0;) {
    start_[old_[i].task] = old_[i].start;
    end_[old_[i].task] = old_[i].end;
  }
}

FlowSchedule time_flows(const FlowWorkload& w, const FlowDecisions& d) {
  std::vector<uint32_t> place(w.num_tasks());
  for (uint32_t i = 0; i < d.order.size(); ++i) place[d.order[i]] = i;
  FlowTimer timer(w);
  FlowSchedule s;
  s.device = d.device;
  s.makespan = timer.restart(d, place);
  const auto n = static_cast<uint32_t>(w.num_ops());
  for (uint32_t v = 0; v < n; ++v) s.op_start.push_back(timer.start(v));
  for (uint32_t q = 0; q < w.num_flows(); ++q) s.flow_start.push_back(timer.start(n + q));
  return s;
}

}  // namespace heddle
