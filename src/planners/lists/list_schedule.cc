#include "list_schedule.h"

#include <algorithm>
#include <queue>

namespace heddle {
namespace {

// Gaps that are looked at for one op and device. Ops come in nearly by time, so that gaps that fit lie near
// the end; the limit keeps odd inputs from taking quadratic time.
constexpr size_t kMostGaps = 256;

}  // namespace

DeviceTimeline::TimeSlot DeviceTimeline::find(double ready, double us, bool insertion) const {
  if (insertion && !gaps_.empty()) {
    auto it = std::partition_point(gaps_.begin(), gaps_.end(), [&](const Gap& g) { return g.end <= ready; });
    for (size_t tried = 0; it != gaps_.end() && tried < kMostGaps; ++it, ++tried) {
      const double start = std::max(ready, it->start);
      if (start + us <= it->end) return {start, start + us};
    }
  }
  const double start = std::max(ready, end_);
  return {start, start + us};
}

void DeviceTimeline::take(const TimeSlot& slot) {
  if (slot.start >= end_) {
    if (slot.start > end_) gaps_.push_back({end_, slot.start});
    end_ = slot.finish;
    return;
  }
  // An op without duration may lie on a gap's border, where it takes nothing.
  if (slot.finish <= slot.start) return;
  const auto it =
      std::partition_point(gaps_.begin(), gaps_.end(), [&](const Gap& g) { return g.end <= slot.start; });
  if (it == gaps_.end() || it->start > slot.start) return;
  const Gap rest{slot.finish, it->end};
  it->end = slot.start;
  const bool before = it->end > it->start, after = rest.end > rest.start;
  if (before && after)
    gaps_.insert(it + 1, rest);
  else if (after)
    *it = rest;
  else if (!before)
    gaps_.erase(it);
}

ListSchedule::ListSchedule(const FlatProblem& flat, const ListOptions& options, const Reserve& reserve)
    : flat_(flat), options_(options), params_(flat, reserve) {
  const size_t n = flat.num_ops(), k = flat.num_devices();
  start_.assign(n, 0);
  finish_.assign(n, 0);
  device_.assign(n, 0);
  timelines_.resize(k);
  ready_.resize(k);
  slots_.resize(k);
  if (flat.is_cold()) {
    param_at_.assign(flat.num_pools() * flat.num_params(), 0);
    load_free_.assign(flat.num_resources(), 0);
  }
  if (options.contention) {
    resource_free_.assign(flat.num_resources(), 0);
    arrival_.assign(flat.num_tensors() * k, -1);
  }
}

bool ListSchedule::fits(uint32_t op, size_t device) const {
  const uint32_t pool = flat_.pool(device);
  if (flat_.pool_limit(pool) <= 0) return true;
  const int64_t fresh = params_.new_bytes(op, device);
  return fresh == 0 || fresh <= params_.room(pool);
}

void ListSchedule::ready_without_contention(uint32_t op) {
  const size_t k = flat_.num_devices();
  std::fill(ready_.begin(), ready_.end(), 0.0);
  for (const uint32_t t : flat_.inputs(op)) {
    const uint32_t from = flat_.producer(t);
    const double made = finish_[from];
    const int64_t bytes = flat_.bytes(t);
    for (size_t i = 0; i < k; ++i)
      ready_[i] = std::max(ready_[i], made + flat_.transfer_us(device_[from], i, bytes));
  }
}

// Transfers that are not decided yet go in the order of the op's inputs; trials are undone.
double ListSchedule::ready_with_contention(uint32_t op, size_t device, bool commit) {
  double ready = 0;
  undo_.clear();
  for (const uint32_t t : flat_.inputs(op)) {
    const uint32_t from = flat_.producer(t);
    const RoutedTransfer& way = flat_.way(device_[from], device);
    if (way.passage == Passage::kFree) {
      ready = std::max(ready, finish_[from]);
      continue;
    }
    if (way.passage == Passage::kNone) {
      ready = kImpossible;
      break;
    }
    double& arrival = arrival_[t * flat_.num_devices() + device];
    if (arrival >= 0) {
      ready = std::max(ready, arrival);
      continue;
    }
    double start = finish_[from];
    for (const uint32_t r : way.resources) start = std::max(start, resource_free_[r]);
    const double end = start + way.time_us(flat_.bytes(t));
    for (const uint32_t r : way.resources) {
      if (!commit) undo_.push_back({r, resource_free_[r]});
      resource_free_[r] = end;
    }
    if (commit) arrival = end;
    ready = std::max(ready, end);
  }
  for (size_t i = undo_.size(); i-- > 0;) resource_free_[undo_[i].first] = undo_[i].second;
  undo_.clear();
  return ready;
}

// When the op's parameters are there.
double ListSchedule::load_params(uint32_t op, size_t device, bool commit) {
  if (flat_.params(op).empty() || !flat_.needs_load(device)) return 0;
  const RoutedTransfer& way = flat_.load_way(device);
  if (way.passage == Passage::kNone) return kImpossible;
  const size_t pool = flat_.pool(device), base = pool * flat_.num_params();
  double ready = 0;
  int64_t bytes = 0;
  for (const uint32_t p : flat_.params(op)) {
    if (flat_.is_resident(pool, p)) continue;
    if (params_.has(pool, p))
      ready = std::max(ready, param_at_[base + p]);
    else
      bytes = plus_bytes(bytes, flat_.param_bytes(p));
  }
  if (bytes == 0) return ready;
  double start = 0;
  for (const uint32_t r : way.resources) start = std::max(start, load_free_[r]);
  const double end = start + way.time_us(bytes);
  if (commit) {
    for (const uint32_t r : way.resources) load_free_[r] = end;
    for (const uint32_t p : flat_.params(op)) {
      if (!params_.has(pool, p)) param_at_[base + p] = end;
    }
  }
  return std::max(ready, end);
}

const std::vector<ListSchedule::TimeSlot>& ListSchedule::earliest(uint32_t op) {
  if (!options_.contention) ready_without_contention(op);
  for (size_t i = 0; i < flat_.num_devices(); ++i) {
    slots_[i] = TimeSlot();
    const double us = flat_.us(op, i);
    if (!(us < kImpossible) || !fits(op, i)) continue;
    double ready = options_.contention ? ready_with_contention(op, i, /*commit=*/false) : ready_[i];
    if (flat_.is_cold()) ready = std::max(ready, load_params(op, i, /*commit=*/false));
    if (ready < kImpossible) slots_[i] = timelines_[i].find(ready, us, options_.insertion);
  }
  return slots_;
}

void ListSchedule::place(uint32_t op, uint32_t device) {
  const TimeSlot slot = slots_[device];
  if (flat_.is_cold()) load_params(op, device, /*commit=*/true);
  if (flat_.has_limits() || flat_.is_cold()) params_.add(op, device);
  if (options_.contention) ready_with_contention(op, device, /*commit=*/true);
  device_[op] = device;
  start_[op] = slot.start;
  finish_[op] = slot.finish;
  makespan_ = std::max(makespan_, slot.finish);
  timelines_[device].take(slot);
}

FlatPlan ListSchedule::decisions() const {
  FlatPlan plan{device_, {flat_.topological().begin(), flat_.topological().end()}};
  std::stable_sort(plan.order.begin(), plan.order.end(),
                   [&](uint32_t a, uint32_t b) { return start_[a] < start_[b]; });
  return plan;
}

double mean_us(const FlatProblem& flat, uint32_t op) {
  double sum = 0;
  int count = 0;
  for (const double us : flat.row(op)) {
    if (us < kImpossible) sum += us, ++count;
  }
  return count > 0 ? sum / count : 0;
}

TransferRate mean_transfer(const FlatProblem& flat) {
  const size_t k = flat.num_devices();
  TransferRate mean;
  for (size_t from = 0; from < k; ++from) {
    for (size_t to = 0; to < k; ++to) {
      const auto& way = flat.way(from, to);
      if (from == to || way.passage != Passage::kRoute) continue;
      mean.latency_us += way.latency_us;
      mean.us_per_byte += 1e6 / way.bytes_per_s;
    }
  }
  const double pairs = k > 1 ? static_cast<double>(k * (k - 1)) : 1;
  return {mean.latency_us / pairs, mean.us_per_byte / pairs};
}

std::vector<double> upward_ranks(const FlatProblem& flat) {
  const TransferRate mean = mean_transfer(flat);
  std::vector<double> rank(flat.num_ops());
  const auto order = flat.topological();
  for (size_t p = order.size(); p-- > 0;) {
    const uint32_t v = order[p];
    double after = 0;
    for (const uint32_t t : flat.outputs(v)) {
      if (flat.readers(t).empty()) continue;
      const double transfer = mean.us(static_cast<double>(flat.bytes(t)));
      for (const uint32_t w : flat.readers(t)) after = std::max(after, transfer + rank[w]);
    }
    rank[v] = mean_us(flat, v) + after;
  }
  return rank;
}

std::vector<uint32_t> order_by_priority(const FlatProblem& flat, const std::vector<double>& priority) {
  const auto later = [&](uint32_t a, uint32_t b) {
    if (priority[a] != priority[b]) return priority[a] < priority[b];
    return flat.topological_position(a) > flat.topological_position(b);
  };
  std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(later)> ready(later);
  std::vector<uint32_t> missing(flat.num_ops()), order;
  for (uint32_t v = 0; v < missing.size(); ++v) {
    missing[v] = static_cast<uint32_t>(flat.inputs(v).size());
    if (missing[v] == 0) ready.push(v);
  }
  order.reserve(missing.size());
  while (!ready.empty()) {
    const uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const uint32_t t : flat.outputs(v)) {
      for (const uint32_t w : flat.readers(t)) {
        if (--missing[w] == 0) ready.push(w);
      }
    }
  }
  return order;
}

}  // namespace heddle
