#include "module_schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace heddle {
namespace {

constexpr uint32_t kNoTask = UINT32_MAX;
// Of the table of transfers: beyond it they are computed anew in every move.
constexpr size_t kMostTransfers = 1 << 22;
// Sums of the same times in another order differ by less.
constexpr double kRounding = 1 + 1e-9;

}  // namespace

ModuleSchedule::ModuleSchedule(const ModuleProblem& m, const std::vector<Batch>& batches)
    : m_(m),
      model_(m.model),
      n_(model_.num_tasks()),
      k_(model_.num_devices()),
      requests_(model_.num_requests()),
      sources_(m.sources_by_task()),
      has_tails_(!m.tail_us.empty() || !m.device_tail_us.empty()),
      rest_(module_paths(m).rest),
      kept_(n_, k_, requests_),
      trial_(n_, k_, requests_),
      after_(n_ + 1, 0.0),
      readers_end_(n_, 0) {
  tabulate_transfers();
  load(batches);
  for (uint32_t t = 0; t < n_; ++t) find_last_reader(t);
  value(kImpossible);
  keep();
}

void ModuleSchedule::tabulate_transfers() {
  first_transfer_.assign(n_, 0);
  size_t edges = 0;
  for (size_t t = 0; t < n_; ++t) edges += model_.in(t).size();
  if (edges * k_ * k_ > kMostTransfers) return;
  for (size_t t = 0; t < n_; ++t) {
    first_transfer_[t] = transfers_.size();
    for (const TaskModel::Edge& e : model_.in(t)) {
      for (size_t from = 0; from < k_; ++from) {
        for (size_t to = 0; to < k_; ++to) transfers_.push_back(model_.transfer_us(from, to, e.bytes));
      }
    }
  }
}

void ModuleSchedule::load(const std::vector<Batch>& batches) {
  genes_.assign(n_ * requests_, 0);
  place_.assign(n_, 0);
  std::vector<uint32_t> first(n_, kNoTask);
  for (uint32_t i = 0; i < batches.size(); ++i) {
    const uint32_t t = batches[i].task;
    first[t] = std::min(first[t], i);
    for (size_t l = 0; l < requests_; ++l) {
      if (batches[i].requests >> l & 1) genes_[t * requests_ + l] = batches[i].device;
    }
  }
  // All batches of a task have one place in the order: ready tasks by their first batch.
  std::vector<size_t> missing(n_, 0);
  std::vector<std::pair<uint32_t, uint32_t>> ready;
  for (uint32_t t = 0; t < n_; ++t) {
    missing[t] = model_.in(t).size();
    if (missing[t] == 0) ready.push_back({first[t], t});
  }
  order_.clear();
  while (!ready.empty()) {
    const auto next = std::min_element(ready.begin(), ready.end());
    const uint32_t t = next->second;
    ready.erase(next);
    place_[t] = static_cast<uint32_t>(order_.size());
    order_.push_back(t);
    for (const TaskModel::Edge& e : model_.out(t)) {
      if (--missing[e.dst] == 0) ready.push_back({first[e.dst], e.dst});
    }
  }
}

void ModuleSchedule::set_device(uint32_t t, size_t l, uint32_t d) {
  const size_t gene = t * requests_ + l;
  if (genes_[gene] == d) return;
  changed_.push_back({gene, genes_[gene]});
  genes_[gene] = d;
  from_ = std::min<size_t>(from_, place_[t]);
  settled_ = std::max({settled_, size_t{place_[t]} + 1, readers_end_[t]});
}

void ModuleSchedule::begin_move() {
  changed_.clear();
  moved_from_ = moved_to_ = 0;
  from_ = n_;
  settled_ = end_ = 0;
}

std::pair<uint32_t, uint32_t> ModuleSchedule::free_places(uint32_t t) const {
  uint32_t first = 0, last = static_cast<uint32_t>(n_ - 1);
  for (const TaskModel::Edge& e : model_.in(t)) first = std::max(first, place_[e.src] + 1);
  for (const TaskModel::Edge& e : model_.out(t)) last = std::min(last, place_[e.dst] - 1);
  return {first, last};
}

void ModuleSchedule::move_place(uint32_t t, uint32_t to) {
  moved_from_ = place_[t];
  moved_to_ = to;
  from_ = std::min(moved_from_, moved_to_);
  settled_ = std::max(moved_from_, moved_to_) + 1;
  rotate(moved_from_, moved_to_);
}

void ModuleSchedule::undo() {
  copy_finishes(kept_, trial_);
  for (size_t i = changed_.size(); i-- > 0;) genes_[changed_[i].first] = changed_[i].second;
  if (moved_from_ != moved_to_) rotate(moved_to_, moved_from_);
}

// Of the places that were timed.
void ModuleSchedule::copy_finishes(const Times& from, Times& to) const {
  for (size_t i = from_; i < end_; ++i) {
    const size_t row = size_t{order_[i]} * requests_;
    std::copy_n(from.finish.data() + row, requests_, to.finish.data() + row);
  }
}

void ModuleSchedule::find_last_reader(uint32_t t) {
  readers_end_[t] = 0;
  for (const TaskModel::Edge& e : model_.out(t))
    readers_end_[t] = std::max<size_t>(readers_end_[t], place_[e.dst] + 1);
}

void ModuleSchedule::rotate(uint32_t from, uint32_t to) {
  const auto begin = order_.begin();
  if (from < to)
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  else
    std::rotate(begin + to, begin + from, begin + from + 1);
  for (uint32_t i = std::min(from, to); i <= std::max(from, to); ++i) place_[order_[i]] = i;
}

void ModuleSchedule::begin_timing() {
  if (!timed_) {
    from_ = 0;
    for (size_t d = 0; d < k_; ++d) trial_.free[d] = m_.free_at(d);
    trial_.worst[0] = 0;
    return;
  }
  std::copy_n(kept_.free.data() + from_ * k_, k_, trial_.free.data() + from_ * k_);
  trial_.worst[from_] = kept_.worst[from_];
}

bool ModuleSchedule::same_clocks(size_t i) const {
  return std::equal(trial_.free.data() + i * k_, trial_.free.data() + (i + 1) * k_,
                    kept_.free.data() + i * k_);
}

// False where the value must be above the limit.
bool ModuleSchedule::time_place(size_t i, double limit) {
  const uint32_t t = order_[i];
  const size_t row = size_t{t} * requests_;
  double* free = trial_.free.data() + (i + 1) * k_;
  std::copy_n(trial_.free.data() + i * k_, k_, free);
  double own = 0;
  uint32_t done = 0;
  for (size_t l = 0; l < requests_; ++l) {
    if (done >> l & 1) continue;
    const uint32_t d = genes_[row + l];
    double start = free[d], tail = 0;
    size_t count = 0;
    uint32_t members = 0;
    for (size_t r = l; r < requests_; ++r) {
      if (genes_[row + r] != d) continue;
      ++count;
      members |= uint32_t{1} << r;
      if (has_tails_) tail = std::max(tail, m_.tail(t, r, d));
    }
    size_t transfer = first_transfer_[t];  // of the edge, in transfers_, where there is that table
    for (const TaskModel::Edge& e : model_.in(t)) {
      for (uint32_t left = members; left != 0; left &= left - 1) {
        const size_t u = e.src * requests_ + static_cast<size_t>(std::countr_zero(left));
        const double us = transfers_.empty() ? model_.transfer_us(genes_[u], d, e.bytes)
                                             : transfers_[transfer + genes_[u] * k_ + d];
        start = std::max(start, trial_.finish[u] + us);
      }
      transfer += k_ * k_;
    }
    for (const auto* s : sources_[t]) {
      if (members >> s->request & 1)
        start = std::max(start, s->at_us + model_.transfer_us(s->device, d, s->bytes));
    }
    if (start + rest_[t * k_ + d] > limit) return false;
    const double end = start + model_.us(t, d, count);
    free[d] = end;
    own = std::max(own, end + tail);
    for (uint32_t left = members; left != 0; left &= left - 1)
      trial_.finish[row + static_cast<size_t>(std::countr_zero(left))] = end;
    done |= members;
  }
  trial_.own[i] = own;
  trial_.worst[i + 1] = std::max(trial_.worst[i], own);
  if (timed_ && settled_ < n_ &&
      !std::equal(trial_.finish.data() + row, trial_.finish.data() + row + requests_,
                  kept_.finish.data() + row))
    settled_ = std::max(settled_, readers_end_[t]);
  return true;
}

double ModuleSchedule::value(double limit) {
  copy_finishes(kept_, trial_);  // where it is not the first call
  begin_timing();
  limit *= kRounding;
  for (size_t i = from_; i < n_; ++i) {
    end_ = i;
    if (timed_ && i >= settled_ && same_clocks(i)) return std::max(trial_.worst[i], after_[i]);
    end_ = i + 1;
    if (!time_place(i, limit)) return kImpossible;
  }
  end_ = n_;
  return trial_.worst[n_];
}

void ModuleSchedule::keep() {
  copy_finishes(trial_, kept_);
  if (moved_from_ != moved_to_) {
    for (uint32_t i = std::min(moved_from_, moved_to_); i <= std::max(moved_from_, moved_to_); ++i) {
      for (const TaskModel::Edge& e : model_.in(order_[i])) find_last_reader(e.src);
    }
  }
  std::copy(trial_.free.data() + from_ * k_, trial_.free.data() + (end_ + 1) * k_,
            kept_.free.data() + from_ * k_);
  std::copy(trial_.own.data() + from_, trial_.own.data() + end_, kept_.own.data() + from_);
  std::copy(trial_.worst.data() + from_, trial_.worst.data() + end_ + 1, kept_.worst.data() + from_);
  // What is known of all places before and from one on changes beyond the places that were timed.
  for (size_t i = end_; i < n_; ++i) {
    const double worst = std::max(kept_.worst[i], kept_.own[i]);
    if (std::exchange(kept_.worst[i + 1], worst) == worst) break;
  }
  for (size_t i = end_; i-- > 0;) {
    const double after = std::max(after_[i + 1], kept_.own[i]);
    if (std::exchange(after_[i], after) == after && i < from_) break;
  }
  timed_ = true;
}

std::vector<uint32_t> ModuleSchedule::critical() const {
  std::vector<uint32_t> critical;
  std::vector<uint32_t> last(k_, kNoTask), before(n_ * k_, kNoTask);
  uint32_t p = 0, d = 0;
  double end = -1;
  for (const uint32_t q : order_) {
    for (size_t l = 0; l < requests_; ++l) {
      const size_t u = q * requests_ + l;
      const uint32_t on = genes_[u];
      if (last[on] != q) before[q * k_ + on] = std::exchange(last[on], q);
      if (kept_.finish[u] + m_.tail(q, l, on) > end) end = kept_.finish[u] + m_.tail(q, l, on), p = q, d = on;
    }
  }
  while (p != kNoTask) {
    critical.push_back(p);
    uint32_t next = kNoTask, next_device = d;
    double start = m_.free_at(d);
    const auto wait = [&](uint32_t q, size_t l, double at) {
      if (at >= start) start = at, next = q, next_device = genes_[q * requests_ + l];
    };
    const uint32_t q = before[p * k_ + d];
    for (size_t l = 0; l < requests_; ++l) {
      if (q != kNoTask && genes_[q * requests_ + l] == d) wait(q, l, kept_.finish[q * requests_ + l]);
      if (genes_[p * requests_ + l] != d) continue;
      for (const TaskModel::Edge& e : model_.in(p)) {
        const size_t u = e.src * requests_ + l;
        wait(e.src, l, kept_.finish[u] + model_.transfer_us(genes_[u], d, e.bytes));
      }
    }
    p = next;
    d = next_device;
  }
  return critical;
}

std::vector<Batch> ModuleSchedule::batches() const {
  std::vector<Batch> batches;
  for (const uint32_t t : order_) {
    const size_t first = batches.size();
    for (size_t l = 0; l < requests_; ++l) {
      const uint32_t d = genes_[t * requests_ + l];
      size_t b = first;
      while (b < batches.size() && batches[b].device != d) ++b;
      if (b == batches.size()) batches.push_back({t, d, 0});
      batches[b].requests |= uint32_t{1} << l;
    }
  }
  return batches;
}

std::vector<Batch> ModuleSchedule::decisions() const {
  auto batches = this->batches();
  std::vector<double> starts;
  module_value(m_, batches, &starts);
  if (starts.size() < batches.size()) return batches;
  return by_start(batches, starts);
}

}  // namespace heddle
