#include "order_timer.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr size_t kBlock = 64;
// In arrival_: not asked for, and asked for but not there yet.
constexpr double kUnasked = -1, kAsked = -2;
constexpr uint64_t kIsLoad = uint64_t{1} << 63;

}  // namespace

OrderTimer::OrderTimer(const FlatProblem& flat)
    : flat_(flat), by_events_(flat.is_cold() || flat.has_contention()), after_(flat.least_remaining_us()) {
  const auto least = flat.least_us();
  for (size_t v = 0; v < after_.size(); ++v) after_[v] = std::max(0.0, (after_[v] - least[v]) * (1 - 1e-12));
  const size_t n = flat.num_ops(), k = flat.num_devices();
  start_.assign(n, 0);
  finish_.assign(n, 0);
  free_.assign(k, 0);
  if (!by_events_) {
    kept_state_.assign((n / kBlock + 1) * (k + 1), 0);
    state_ = kept_state_;
  }
}

double OrderTimer::time(const FlatPlan& plan, double limit_us, size_t from) {
  return by_events_ ? time_by_events(plan, limit_us) : time_in_order(plan, limit_us, from);
}

// Without contention and loads the order of the list is enough: every transfer starts when its tensor is
// made.
double OrderTimer::time_in_order(const FlatPlan& plan, double limit_us, size_t from) {
  const size_t n = flat_.num_ops(), k = flat_.num_devices(), width = k + 1;
  first_block_ = last_block_ = from / kBlock;
  old_.clear();
  const double* state = &kept_state_[first_block_ * width];
  std::copy(state, state + k, free_.begin());
  makespan_ = state[k];
  size_t place = first_block_ * kBlock;
  for (; place < from; ++place) {
    const uint32_t v = plan.order[place];
    free_[plan.device[v]] = finish_[v];
    makespan_ = std::max(makespan_, finish_[v]);
  }
  for (; place < n; ++place) {
    if (place % kBlock == 0) {
      last_block_ = place / kBlock;
      double* to = &state_[last_block_ * width];
      std::copy(free_.begin(), free_.end(), to);
      to[k] = makespan_;
    }
    const uint32_t v = plan.order[place], d = plan.device[v];
    double start = free_[d];
    for (const uint32_t o : flat_.overlaps(d)) start = std::max(start, free_[o]);
    for (const uint32_t t : flat_.inputs(v)) {
      const uint32_t u = flat_.producer(t), from_device = plan.device[u];
      const double there =
          from_device == d ? finish_[u] : finish_[u] + flat_.transfer_us(from_device, d, flat_.bytes(t));
      start = std::max(start, there);
    }
    const double finish = start + flat_.us(v, d);
    if (finish + after_[v] > limit_us || !(finish < kImpossible)) return kImpossible;
    old_.push_back({v, start_[v], finish_[v]});
    start_[v] = start;
    finish_[v] = free_[d] = finish;
    makespan_ = std::max(makespan_, finish);
  }
  return makespan_;
}

void OrderTimer::keep() {
  if (by_events_) return;
  const size_t width = flat_.num_devices() + 1;
  // The first block's own state is unchanged unless timing began at its first place, where both are equal.
  for (size_t b = first_block_ + 1; b <= last_block_; ++b) {
    std::copy_n(&state_[b * width], width, &kept_state_[b * width]);
  }
  old_.clear();
}

void OrderTimer::drop() {
  if (by_events_) return;
  for (size_t i = old_.size(); i-- > 0;) {
    start_[old_[i].op] = old_[i].start;
    finish_[old_[i].op] = old_[i].finish;
  }
  old_.clear();
}

void OrderTimer::add_wait(int32_t& head, uint32_t op) {
  waits_.push_back({head, op});
  head = static_cast<int32_t>(waits_.size()) - 1;
  ++missing_[op];
}

bool OrderTimer::link_ops(const FlatPlan& plan) {
  const size_t n = flat_.num_ops(), k = flat_.num_devices();
  std::fill(start_.begin(), start_.end(), 0.0);
  missing_.assign(n, 0);
  after_op_.assign(n, -1);
  last_on_.assign(k, -1);
  waits_.clear();
  for (const uint32_t v : plan.order) {
    const uint32_t d = plan.device[v];
    if (!(flat_.us(v, d) < kImpossible)) return false;
    for (const uint32_t t : flat_.inputs(v)) {
      if (flat_.way(plan.device[flat_.producer(t)], d).passage == Passage::kNone) return false;
    }
    missing_[v] += static_cast<uint32_t>(flat_.inputs(v).size());
    if (last_on_[d] >= 0) add_wait(after_op_[static_cast<size_t>(last_on_[d])], v);
    for (const uint32_t o : flat_.overlaps(d)) {
      if (last_on_[o] >= 0) add_wait(after_op_[static_cast<size_t>(last_on_[o])], v);
    }
    last_on_[d] = static_cast<int32_t>(v);
  }
  return true;
}

// Loads in order of first use; those that share a resource one after another.
bool OrderTimer::plan_loads(const FlatPlan& plan) {
  const size_t n = flat_.num_ops();
  load_waiting_.assign(n, -1);
  load_bytes_.assign(n, 0);
  place_.resize(n);
  chain_of_device_.assign(flat_.num_devices(), -1);
  chain_of_resource_.assign(flat_.num_resources(), -1);
  brought_.assign(flat_.num_pools() * flat_.num_params(), -1);
  chains_.clear();
  for (uint32_t place = 0; place < n; ++place) {
    const uint32_t v = plan.order[place], d = plan.device[v];
    place_[v] = place;
    if (!flat_.needs_load(d)) continue;
    const size_t base = flat_.pool(d) * flat_.num_params();
    for (const uint32_t p : flat_.params(v)) {
      if (flat_.is_resident(flat_.pool(d), p)) continue;
      int32_t& by = brought_[base + p];
      if (by < 0) {
        by = static_cast<int32_t>(v);
        load_bytes_[v] = plus_bytes(load_bytes_[v], flat_.param_bytes(p));
      }
      add_wait(load_waiting_[static_cast<size_t>(by)], v);
    }
    if (load_bytes_[v] == 0) continue;
    if (flat_.load_way(d).passage == Passage::kNone) return false;
    int32_t& chain = chain_of_device_[d];
    const auto resources = flat_.load_way(d).resources;
    for (const uint32_t r : resources) {
      if (chain < 0) chain = chain_of_resource_[r];
    }
    if (chain < 0) {
      chain = static_cast<int32_t>(chains_.size());
      chains_.emplace_back();
    }
    for (const uint32_t r : resources) {
      if (chain_of_resource_[r] < 0) chain_of_resource_[r] = chain;
    }
    chains_[static_cast<size_t>(chain)].push_back(v);
  }
  chain_at_.assign(chains_.size(), 0);
  return true;
}

void OrderTimer::push(const ResourceRequest& request) {
  requests_.push_back(request);
  std::push_heap(requests_.begin(), requests_.end());
}

void OrderTimer::issue_next_load(size_t chain, double at) {
  if (chain_at_[chain] == chains_[chain].size()) return;
  const uint32_t v = chains_[chain][chain_at_[chain]++];
  push({at, kIsLoad | (uint64_t{place_[v]} << 32) | v, 0});
}

void OrderTimer::arrive(uint32_t op, double at) {
  start_[op] = std::max(start_[op], at);
  if (--missing_[op] == 0) ready_.push_back(op);
}

void OrderTimer::release(int32_t head, double at) {
  for (int32_t i = head; i >= 0; i = waits_[static_cast<size_t>(i)].next)
    arrive(waits_[static_cast<size_t>(i)].op, at);
}

bool OrderTimer::start_ready(const FlatPlan& plan, double limit_us) {
  const size_t k = flat_.num_devices();
  while (!ready_.empty()) {
    const uint32_t v = ready_.back(), d = plan.device[v];
    ready_.pop_back();
    const double finish = start_[v] + flat_.us(v, d);
    finish_[v] = finish;
    if (finish + after_[v] > limit_us || !(finish < kImpossible)) return false;
    makespan_ = std::max(makespan_, finish);
    release(after_op_[v], finish);
    for (const uint32_t t : flat_.outputs(v)) {
      for (const uint32_t w : flat_.readers(t)) {
        const uint32_t to = plan.device[w];
        if (to == d || flat_.way(d, to).passage == Passage::kFree) {
          arrive(w, finish);
        } else if (arrival_[t * k + to] == kUnasked) {
          arrival_[t * k + to] = kAsked;
          push({finish, (uint64_t{v} << 32) | t, to});
        }
      }
    }
  }
  return true;
}

double OrderTimer::hold(const RoutedTransfer& way, double ready, double us) {
  for (const uint32_t r : way.resources) ready = std::max(ready, resource_free_[r]);
  for (const uint32_t r : way.resources) resource_free_[r] = ready + us;
  return ready;
}

void OrderTimer::serve_load(const FlatPlan& plan, const ResourceRequest& request) {
  const auto v = static_cast<uint32_t>(request.rank);
  const RoutedTransfer& way = flat_.load_way(plan.device[v]);
  const double us = way.time_us(load_bytes_[v]);
  const double start = hold(way, request.ready, us);
  makespan_ = std::max(makespan_, start + us);
  release(load_waiting_[v], start + us);
  const auto chain = static_cast<size_t>(chain_of_device_[plan.device[v]]);
  issue_next_load(chain, way.resources.empty() ? start : start + us);
}

void OrderTimer::serve_transfer(const FlatPlan& plan, const ResourceRequest& request) {
  const auto t = static_cast<uint32_t>(request.rank);
  const RoutedTransfer& way = flat_.way(plan.device[flat_.producer(t)], request.to);
  const double us = way.time_us(flat_.bytes(t));
  const double there = hold(way, request.ready, us) + us;
  arrival_[t * flat_.num_devices() + request.to] = there;
  for (const uint32_t w : flat_.readers(t)) {
    if (plan.device[w] == request.to) arrive(w, there);
  }
}

double OrderTimer::time_by_events(const FlatPlan& plan, double limit_us) {
  if (!link_ops(plan)) return kImpossible;
  makespan_ = 0;
  requests_.clear();
  ready_.clear();
  arrival_.assign(flat_.num_tensors() * flat_.num_devices(), kUnasked);
  resource_free_.assign(flat_.num_resources(), 0);
  if (flat_.is_cold()) {
    if (!plan_loads(plan)) return kImpossible;
    for (size_t chain = 0; chain < chains_.size(); ++chain) issue_next_load(chain, 0);
  }
  for (const uint32_t v : plan.order) {
    if (missing_[v] == 0) ready_.push_back(v);
  }
  if (!start_ready(plan, limit_us)) return kImpossible;
  while (!requests_.empty()) {
    const ResourceRequest request = requests_.front();
    std::pop_heap(requests_.begin(), requests_.end());
    requests_.pop_back();
    if (request.rank & kIsLoad)
      serve_load(plan, request);
    else
      serve_transfer(plan, request);
    if (!start_ready(plan, limit_us)) return kImpossible;
  }
  return makespan_;
}

OrderTimer::Critical OrderTimer::critical(const FlatPlan& plan) {
  Critical critical;
  if (!(time(plan, kImpossible) < kImpossible)) {
    drop();
    return critical;
  }
  keep();
  const size_t n = flat_.num_ops(), k = flat_.num_devices();
  std::vector<uint32_t> before(n, UINT32_MAX), last(k, UINT32_MAX);
  for (const uint32_t v : plan.order) {
    const uint32_t d = plan.device[v];
    const auto look = [&](uint32_t on) {
      if (last[on] != UINT32_MAX && finish_[last[on]] == start_[v]) before[v] = last[on];
    };
    for (const uint32_t o : flat_.overlaps(d)) look(o);
    look(d);
    last[d] = v;
  }
  uint32_t v = static_cast<uint32_t>(std::max_element(finish_.begin(), finish_.end()) - finish_.begin());
  while (critical.ops.size() < n) {
    critical.ops.push_back(v);
    critical.behind.push_back(before[v]);
    uint32_t next = before[v];
    for (const uint32_t t : flat_.inputs(v)) {
      const uint32_t u = flat_.producer(t), from = plan.device[u], to = plan.device[v];
      const bool free = flat_.way(from, to).passage == Passage::kFree;
      const double there = free         ? finish_[u]
                           : by_events_ ? arrival_[t * k + to]
                                        : finish_[u] + flat_.transfer_us(from, to, flat_.bytes(t));
      if (there == start_[v] && next == UINT32_MAX) next = u;
    }
    if (next == UINT32_MAX || start_[v] <= 0) break;
    v = next;
  }
  return critical;
}

}  // namespace heddle
