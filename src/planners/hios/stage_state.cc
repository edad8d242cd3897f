#include "stage_state.h"

#include <algorithm>
#include <bit>

namespace heddle {

StageState::StageState(const StageInstance& instance)
    : instance_(instance),
      n_(instance.num_ops()),
      k_(instance.num_devices()),
      width_(instance.width()),
      forward_((n_ + 63) / 64, 0),
      backward_(forward_),
      behind_(n_, 0),
      arrival_(k_),
      leave_(k_),
      first_(k_),
      last_(k_) {
  clear();
  kept_ = now_;
}

void StageState::clear() {
  Block& b = now_;
  b.stage_of.assign(n_, kNone);
  b.ops.assign(n_ * width_, 0);
  for (auto* v : {&b.count, &b.device, &b.index, &b.order, &b.position, &b.free}) v->assign(n_, 0);
  for (auto* v : {&b.start, &b.end, &b.tail, &b.from_start, &b.duration, &b.sum, &b.busy, &b.longest})
    v->assign(n_, 0);
  for (uint32_t s = 0; s < n_; ++s) {
    b.order[s] = b.position[s] = s;
    b.free[s] = static_cast<uint32_t>(n_) - 1 - s;
  }
  b.sequence.assign(k_, {});
  b.makespan = 0;
}

// What a stage waits for, and what waits for it: the neighbours on its device and over the graph's edges.
template <class Visit>
void StageState::each_before(uint32_t s, Visit visit) const {
  const Block& b = now_;
  if (b.index[s] > 0) visit(b.sequence[b.device[s]][b.index[s] - 1]);
  for (uint32_t i = 0; i < b.count[s]; ++i) {
    for (const auto& in : instance_.inputs(b.ops[s * width_ + i])) {
      if (b.stage_of[in.op] != kNone) visit(b.stage_of[in.op]);
    }
  }
}
template <class Visit>
void StageState::each_behind(uint32_t s, Visit visit) const {
  const Block& b = now_;
  const auto& sequence = b.sequence[b.device[s]];
  if (b.index[s] + 1 < sequence.size()) visit(sequence[b.index[s] + 1]);
  for (uint32_t i = 0; i < b.count[s]; ++i) {
    for (const auto& out : instance_.outputs(b.ops[s * width_ + i])) {
      if (b.stage_of[out.op] != kNone) visit(b.stage_of[out.op]);
    }
  }
}

void StageState::load(const StageSchedule& schedule) {
  clear();
  expected_.clear();
  Block& b = now_;
  std::vector<uint32_t> waiting(n_, 0), order;
  for (uint32_t d = 0; d < k_; ++d) {
    for (const Stage& stage : schedule.devices[d]) {
      const uint32_t s = b.free.back();
      b.free.pop_back();
      b.device[s] = d;
      b.index[s] = static_cast<uint32_t>(b.sequence[d].size());
      b.sequence[d].push_back(s);
      for (const uint32_t v : stage) {
        b.ops[s * width_ + b.count[s]++] = v;
        b.stage_of[v] = s;
      }
      renew_duration(s);
    }
  }
  for (uint32_t s = 0; s < n_; ++s) {
    if (b.count[s] > 0) each_before(s, [&](uint32_t) { ++waiting[s]; });
    if (waiting[s] == 0) order.push_back(s);  // empty ones, too
  }
  for (size_t i = 0; i < order.size(); ++i) {
    if (b.count[order[i]] == 0) continue;
    each_behind(order[i], [&](uint32_t t) {
      if (--waiting[t] == 0) order.push_back(t);
    });
  }
  b.order = order;
  for (uint32_t p = 0; p < order.size(); ++p) b.position[order[p]] = p;
  for (uint32_t s = 0; s < n_; ++s) {
    if (b.count[s] == 0) continue;
    b.end[s] = b.from_start[s] = -1;  // differs from every value
    mark_forward(s);
    mark_backward(s);
  }
  propagate();
  kept_ = now_;
}

StageSchedule StageState::schedule() const {
  StageSchedule result;
  result.devices.resize(k_);
  for (size_t d = 0; d < k_; ++d) {
    for (size_t i = 0; i < num_stages(d); ++i) {
      const auto ops = stage_at(d, i);
      result.devices[d].emplace_back(ops.begin(), ops.end());
    }
  }
  return result;
}

void StageState::renew_duration(uint32_t s) {
  Block& b = now_;
  const uint32_t d = b.device[s];
  const std::span<const uint32_t> ops{b.ops.data() + s * width_, b.count[s]};
  b.sum[s] = b.busy[s] = b.longest[s] = 0;
  for (const uint32_t v : ops) {
    b.sum[s] += instance_.us(v, d);
    b.busy[s] += instance_.busy_us(v, d);
    b.longest[s] = std::max(b.longest[s], instance_.us(v, d));
  }
  b.duration[s] = instance_.stage_us(ops, d);
}

double StageState::joined_us(uint32_t s, uint32_t v) const {
  const Block& b = now_;
  const uint32_t d = b.device[s];
  const double longest = std::max(b.longest[s], instance_.us(v, d));
  return instance_.sharing(d).us(b.sum[s] + instance_.us(v, d), b.busy[s] + instance_.busy_us(v, d), longest);
}

void StageState::renumber(uint32_t d, size_t from) {
  const auto& sequence = now_.sequence[d];
  for (size_t i = from; i < sequence.size(); ++i) now_.index[sequence[i]] = static_cast<uint32_t>(i);
}

void StageState::mark_forward(uint32_t s) {
  const uint32_t p = now_.position[s];
  forward_[p / 64] |= uint64_t{1} << (p % 64);
}
void StageState::mark_backward(uint32_t s) {
  const uint32_t p = now_.position[s];
  backward_[p / 64] |= uint64_t{1} << (p % 64);
}

void StageState::propagate_heads() {
  Block& b = now_;
  for (size_t word = 0; word < forward_.size(); ++word) {
    while (forward_[word] != 0) {
      const auto bit = static_cast<size_t>(std::countr_zero(forward_[word]));
      forward_[word] &= forward_[word] - 1;
      const uint32_t s = b.order[word * 64 + bit];
      if (b.count[s] == 0) continue;
      const uint32_t d = b.device[s];
      double start = b.index[s] > 0 ? b.end[b.sequence[d][b.index[s] - 1]] : 0;
      for (uint32_t i = 0; i < b.count[s]; ++i) {
        for (const auto& in : instance_.inputs(b.ops[s * width_ + i])) {
          const uint32_t from = b.stage_of[in.op];
          if (from == kNone) continue;
          start = std::max(start, b.end[from] + instance_.transfer_us(in.bytes, b.device[from], d));
        }
      }
      b.start[s] = start;
      const double end = start + b.duration[s];
      if (end == b.end[s]) continue;
      b.end[s] = end;
      each_behind(s, [this](uint32_t t) { mark_forward(t); });
    }
  }
}

void StageState::propagate_tails() {
  Block& b = now_;
  for (size_t word = backward_.size(); word-- > 0;) {
    while (backward_[word] != 0) {
      const auto bit = static_cast<size_t>(63 - std::countl_zero(backward_[word]));
      backward_[word] ^= uint64_t{1} << bit;
      const uint32_t s = b.order[word * 64 + bit];
      if (b.count[s] == 0) continue;
      const uint32_t d = b.device[s];
      const auto& sequence = b.sequence[d];
      double tail = b.index[s] + 1 < sequence.size() ? b.from_start[sequence[b.index[s] + 1]] : 0;
      for (uint32_t i = 0; i < b.count[s]; ++i) {
        if (!expected_.empty()) tail = std::max(tail, expected_[b.ops[s * width_ + i]]);
        for (const auto& out : instance_.outputs(b.ops[s * width_ + i])) {
          const uint32_t to = b.stage_of[out.op];
          if (to == kNone) continue;
          tail = std::max(tail, b.from_start[to] + instance_.transfer_us(out.bytes, d, b.device[to]));
        }
      }
      b.tail[s] = tail;
      const double from_start = tail + b.duration[s];
      if (from_start == b.from_start[s]) continue;
      b.from_start[s] = from_start;
      each_before(s, [this](uint32_t t) { mark_backward(t); });
    }
  }
}

void StageState::propagate() {
  propagate_heads();
  propagate_tails();
  now_.makespan = 0;
  for (const auto& sequence : now_.sequence) {
    if (!sequence.empty()) now_.makespan = std::max(now_.makespan, now_.end[sequence.back()]);
  }
}

void StageState::remove(uint32_t v) {
  Block& b = now_;
  const uint32_t s = b.stage_of[v], d = b.device[s];
  for (const auto& out : instance_.outputs(v)) {
    if (b.stage_of[out.op] != kNone) mark_forward(b.stage_of[out.op]);
  }
  for (const auto& in : instance_.inputs(v)) {
    if (b.stage_of[in.op] != kNone) mark_backward(b.stage_of[in.op]);
  }
  b.stage_of[v] = kNone;
  if (b.count[s] == 1) {
    auto& sequence = b.sequence[d];
    const uint32_t i = b.index[s];
    if (i + 1 < sequence.size()) mark_forward(sequence[i + 1]);
    if (i > 0) mark_backward(sequence[i - 1]);
    sequence.erase(sequence.begin() + i);
    renumber(d, i);
    b.count[s] = 0;
    b.free.push_back(s);
  } else {
    uint32_t* ops = b.ops.data() + s * width_;
    b.count[s] = static_cast<uint32_t>(std::remove(ops, ops + b.count[s], v) - ops);
    renew_duration(s);
    mark_forward(s);
    mark_backward(s);
  }
  propagate();
}

size_t StageState::slots(uint32_t v, uint32_t only, double most, std::vector<Insertion>& slots) {
  const Block& b = now_;
  const uint32_t begin = only == kAny ? 0 : only;
  const uint32_t end = only == kAny ? static_cast<uint32_t>(k_) : only + 1;
  // A stage that leads to an input's stage ends before that starts; one that an output's stage leads to has
  // no longer way to the end than that has behind it. The stages of inputs and outputs are ruled out by
  // their index.
  double input_start = -1, output_tail = -1;
  for (uint32_t d = begin; d < end; ++d) {
    arrival_[d] = 0;
    leave_[d] = expected_.empty() ? 0 : expected_[v];
    first_[d] = 0;
    last_[d] = static_cast<uint32_t>(b.sequence[d].size());
  }
  for (const auto& in : instance_.inputs(v)) {
    const uint32_t s = b.stage_of[in.op];
    if (s == kNone) continue;
    const uint32_t from = b.device[s];
    input_start = std::max(input_start, b.start[s]);
    if (from >= begin && from < end) first_[from] = std::max(first_[from], b.index[s] + 1);
    for (uint32_t d = begin; d < end; ++d)
      arrival_[d] = std::max(arrival_[d], b.end[s] + instance_.transfer_us(in.bytes, from, d));
  }
  for (const auto& out : instance_.outputs(v)) {
    const uint32_t s = b.stage_of[out.op];
    if (s == kNone) continue;
    const uint32_t to = b.device[s];
    output_tail = std::max(output_tail, b.tail[s]);
    if (to >= begin && to < end) last_[to] = std::min(last_[to], b.index[s]);
    for (uint32_t d = begin; d < end; ++d)
      leave_[d] = std::max(leave_[d], b.from_start[s] + instance_.transfer_us(out.bytes, d, to));
  }
  size_t timed = 0;
  for (uint32_t d = begin; d < end; ++d) {
    const double us = instance_.us(v, d);
    const double least = arrival_[d] + us + leave_[d];
    if (!(least <= most) || least == kNoTime) continue;
    const auto& sequence = b.sequence[d];
    // Ends rise along a device, ways to the end fall.
    const auto lower = std::partition_point(sequence.begin() + first_[d], sequence.end(),
                                            [&](uint32_t s) { return b.end[s] <= input_start; });
    uint32_t i = static_cast<uint32_t>(lower - sequence.begin());
    double before = i > 0 ? b.end[sequence[i - 1]] : 0;
    for (; i <= last_[d]; ++i) {
      if (i > 0 && !(b.from_start[sequence[i - 1]] > output_tail)) break;
      const bool is_end = i == sequence.size();
      const double head = std::max(arrival_[d], before);
      if (head + us + leave_[d] > most) break;  // heads only rise from here
      const double tail = is_end ? 0 : b.from_start[sequence[i]];
      const double length = head + us + std::max(leave_[d], tail);
      ++timed;
      if (length <= most) slots.push_back({d, i, false, length, head + us});
      if (is_end) break;
      const uint32_t s = sequence[i];
      if (i < last_[d] && b.count[s] < width_ && b.from_start[s] > output_tail) {
        const double done = std::max(arrival_[d], b.start[s]) + joined_us(s, v);
        const double joined = done + std::max(leave_[d], b.tail[s]);
        ++timed;
        if (joined <= most) slots.push_back({d, i, true, joined, done});
      }
      before = b.end[s];
    }
  }
  return timed;
}

bool StageState::insert(uint32_t v, const Insertion& slot) {
  Block& b = now_;
  const uint32_t d = slot.device;
  auto& sequence = b.sequence[d];
  uint32_t s = 0;
  if (slot.join) {
    s = sequence[slot.index];
    b.ops[s * width_ + b.count[s]++] = v;
  } else {
    s = b.free.back();
    b.free.pop_back();
    b.device[s] = d;
    b.count[s] = 1;
    b.ops[s * width_] = v;
    sequence.insert(sequence.begin() + slot.index, s);
    renumber(d, slot.index);
  }
  b.stage_of[v] = s;
  renew_duration(s);
  b.end[s] = b.from_start[s] = -1;  // differs from every value, so that the neighbours are looked at
  if (!settle(s)) return false;
  mark_forward(s);
  mark_backward(s);
  propagate();
  return true;
}

// Moves the stage, and others with it, so that the order is topological again: what the stage leads to,
// within the stretch that is out of order, goes behind it (D. Pearce and P. Kelly, "A dynamic topological
// sort algorithm for directed acyclic graphs", ACM Journal of Experimental Algorithmics 11, 2006).
bool StageState::settle(uint32_t s) {
  Block& b = now_;
  const uint32_t here = b.position[s];
  uint32_t after = 0, until = static_cast<uint32_t>(n_);
  bool has_before = false, self = false;
  each_before(s, [&](uint32_t t) {
    after = std::max(after, b.position[t]);
    has_before = true;
    self |= t == s;
  });
  each_behind(s, [&](uint32_t t) { until = std::min(until, b.position[t]); });
  if (self) return false;
  if ((!has_before || after < here) && here < until) return true;
  const auto put = [&](uint32_t p, uint32_t t) {
    b.order[p] = t;
    b.position[t] = p;
  };
  if (!has_before || after < until) {
    if (has_before && here < after) {
      for (uint32_t p = here; p < after; ++p) put(p, b.order[p + 1]);
      put(after, s);
    } else {
      for (uint32_t p = here; p > until; --p) put(p, b.order[p - 1]);
      put(until, s);
    }
    return true;
  }
  const uint32_t low = std::min(until, here), high = std::max(after, here);
  moved_.clear();
  each_behind(s, [&](uint32_t t) { behind_[t] = 1; });
  uint32_t p = low;
  for (uint32_t q = low; q <= high; ++q) {
    const uint32_t t = b.order[q];
    if (t == s) continue;
    if (!behind_[t] && b.count[t] > 0) each_before(t, [&](uint32_t u) { behind_[t] |= behind_[u]; });
    if (behind_[t])
      moved_.push_back(t);
    else
      put(p++, t);
  }
  bool cyclic = false;
  each_before(s, [&](uint32_t t) { cyclic |= behind_[t] != 0; });
  put(p++, s);
  for (const uint32_t t : moved_) {
    put(p++, t);
    behind_[t] = 0;
  }
  each_behind(s, [&](uint32_t t) { behind_[t] = 0; });
  return !cyclic;
}

}  // namespace heddle
