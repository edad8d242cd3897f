#include "module_schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace heddle {
namespace {

constexpr uint32_t kOutside = UINT32_MAX;
// Sums of the same times in another order differ by less.
constexpr double kRounding = 1 + 1e-9;

}  // namespace

ModuleSchedule::ModuleSchedule(const ModuleProblem& m, const std::vector<Batch>& batches)
    : m_(m),
      model_(*m.model),
      n_(m.tasks.size()),
      k_(model_.num_devices()),
      requests_(model_.num_requests()),
      rest_(module_paths(m).rest),
      kept_(n_, k_, requests_),
      trial_(n_, k_, requests_),
      after_(n_ + 1, 0.0) {
  std::vector<uint32_t> place(model_.num_tasks(), kOutside);
  for (uint32_t p = 0; p < n_; ++p) place[m.tasks[p]] = p;
  in_begin_.assign(n_ + 1, 0);
  out_.resize(n_);
  sources_.resize(n_);
  for (uint32_t p = 0; p < n_; ++p) {
    for (const TaskModel::Edge& e : model_.in(m.tasks[p])) {
      if (place[e.src] == kOutside) continue;
      in_.push_back({place[e.src], e.bytes});
      out_[place[e.src]].push_back(p);
    }
    in_begin_[p + 1] = static_cast<uint32_t>(in_.size());
  }
  for (const auto& s : m.sources) sources_[s.place].push_back(&s);
  has_tails_ = !m.tail_us.empty() || !m.device_tail_us.empty();
  load(batches);
  value(kImpossible);
  keep();
}

void ModuleSchedule::load(const std::vector<Batch>& batches) {
  std::vector<uint32_t> place(model_.num_tasks(), kOutside);
  for (uint32_t p = 0; p < n_; ++p) place[m_.tasks[p]] = p;
  genes_.assign(n_ * requests_, 0);
  at_.assign(n_, 0);
  std::vector<uint32_t> first(n_, kOutside);
  for (uint32_t i = 0; i < batches.size(); ++i) {
    const uint32_t p = place[batches[i].task];
    first[p] = std::min(first[p], i);
    for (size_t l = 0; l < requests_; ++l) {
      if (batches[i].requests >> l & 1) genes_[p * requests_ + l] = batches[i].device;
    }
  }
  // All batches of a task have one place in the order: ready tasks by their first batch.
  std::vector<uint32_t> missing(n_, 0);
  std::vector<std::pair<uint32_t, uint32_t>> ready;
  for (uint32_t p = 0; p < n_; ++p) {
    missing[p] = static_cast<uint32_t>(inputs(p).size());
    if (missing[p] == 0) ready.push_back({first[p], p});
  }
  order_.clear();
  while (!ready.empty()) {
    const auto next = std::min_element(ready.begin(), ready.end());
    const uint32_t p = next->second;
    ready.erase(next);
    at_[p] = static_cast<uint32_t>(order_.size());
    order_.push_back(p);
    for (const uint32_t q : out_[p]) {
      if (--missing[q] == 0) ready.push_back({first[q], q});
    }
  }
}

void ModuleSchedule::set_device(uint32_t p, size_t l, uint32_t d) {
  const size_t gene = p * requests_ + l;
  if (genes_[gene] == d) return;
  changed_.push_back({gene, genes_[gene]});
  genes_[gene] = d;
  from_ = std::min<size_t>(from_, at_[p]);
  settled_ = std::max<size_t>(settled_, at_[p] + 1);
  unsettle_readers(p);
}

void ModuleSchedule::unsettle_readers(uint32_t p) {
  for (const uint32_t q : out_[p]) settled_ = std::max<size_t>(settled_, at_[q] + 1);
}

void ModuleSchedule::begin_move() {
  changed_.clear();
  moved_from_ = moved_to_ = 0;
  from_ = n_;
  settled_ = 0;
}

std::pair<uint32_t, uint32_t> ModuleSchedule::free_places(uint32_t p) const {
  uint32_t first = 0, last = static_cast<uint32_t>(n_ - 1);
  for (const In& e : inputs(p)) first = std::max(first, at_[e.from] + 1);
  for (const uint32_t q : out_[p]) last = std::min(last, at_[q] - 1);
  return {first, last};
}

void ModuleSchedule::move_place(uint32_t p, uint32_t to) {
  moved_from_ = at_[p];
  moved_to_ = to;
  from_ = std::min(moved_from_, moved_to_);
  settled_ = std::max(moved_from_, moved_to_) + 1;
  rotate(moved_from_, moved_to_);
}

void ModuleSchedule::undo() {
  for (size_t i = changed_.size(); i-- > 0;) genes_[changed_[i].first] = changed_[i].second;
  if (moved_from_ != moved_to_) rotate(moved_to_, moved_from_);
}

void ModuleSchedule::rotate(uint32_t from, uint32_t to) {
  const auto begin = order_.begin();
  if (from < to)
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  else
    std::rotate(begin + to, begin + from, begin + from + 1);
  for (uint32_t i = std::min(from, to); i <= std::max(from, to); ++i) at_[order_[i]] = i;
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
  const uint32_t p = order_[i];
  const size_t row = size_t{p} * requests_;
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
      if (has_tails_) tail = std::max(tail, m_.tail(p, r, d));
    }
    for (const In& e : inputs(p)) {
      const Times& times = at_[e.from] < from_ ? kept_ : trial_;
      for (uint32_t left = members; left != 0; left &= left - 1) {
        const size_t u = e.from * requests_ + static_cast<size_t>(std::countr_zero(left));
        start = std::max(start, times.finish[u] + model_.transfer_us(genes_[u], d, e.bytes));
      }
    }
    for (const auto* s : sources_[p]) {
      if (members >> s->request & 1)
        start = std::max(start, s->at_us + model_.transfer_us(s->device, d, s->bytes));
    }
    if (start + rest_[p * k_ + d] > limit) return false;
    const double end = start + model_.us(m_.tasks[p], d, count);
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
    unsettle_readers(p);
  return true;
}

double ModuleSchedule::value(double limit) {
  begin_timing();
  limit *= kRounding;
  for (size_t i = from_; i < n_; ++i) {
    if (timed_ && i >= settled_ && same_clocks(i)) {
      end_ = i;
      return std::max(trial_.worst[i], after_[i]);
    }
    if (!time_place(i, limit)) return kImpossible;
  }
  end_ = n_;
  return trial_.worst[n_];
}

void ModuleSchedule::keep() {
  for (size_t i = from_; i < end_; ++i) {
    const size_t row = size_t{order_[i]} * requests_;
    std::copy_n(trial_.finish.data() + row, requests_, kept_.finish.data() + row);
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
  std::vector<uint32_t> last(k_, kOutside), before(n_ * k_, kOutside);
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
  while (p != kOutside) {
    critical.push_back(p);
    uint32_t next = kOutside, next_device = d;
    double start = m_.free_at(d);
    const auto wait = [&](uint32_t q, size_t l, double at) {
      if (at >= start) start = at, next = q, next_device = genes_[q * requests_ + l];
    };
    const uint32_t q = before[p * k_ + d];
    for (size_t l = 0; l < requests_; ++l) {
      if (q != kOutside && genes_[q * requests_ + l] == d) wait(q, l, kept_.finish[q * requests_ + l]);
      if (genes_[p * requests_ + l] != d) continue;
      for (const In& e : inputs(p)) {
        const size_t u = e.from * requests_ + l;
        wait(e.from, l, kept_.finish[u] + model_.transfer_us(genes_[u], d, e.bytes));
      }
    }
    p = next;
    d = next_device;
  }
  return critical;
}

std::vector<Batch> ModuleSchedule::batches() const {
  std::vector<Batch> batches;
  for (const uint32_t p : order_) {
    const size_t first = batches.size();
    for (size_t l = 0; l < requests_; ++l) {
      const uint32_t d = genes_[p * requests_ + l];
      size_t b = first;
      while (b < batches.size() && batches[b].device != d) ++b;
      if (b == batches.size()) batches.push_back({m_.tasks[p], d, 0});
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
