// A module by simulated annealing over devices and order: what the solvers start from. A good start is worth
// more to them than time: it cuts the search and shortens the horizon of their big constants.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "heddle/base/random.h"
#include "module_problem.h"

namespace heddle {
namespace {

// Temperatures as shares of the start's value.
constexpr double kHot = 0.03, kCold = 1e-4;
constexpr uint32_t kOutside = UINT32_MAX;
// Sums of the same times in another order differ by less.
constexpr double kRounding = 1 + 1e-9;
// Kinds of moves, equally likely: another place in the order, one request of a task, all of them, all of a
// task and of one that reads it, one request along with another one for some tasks.
enum : uint64_t { kOrderKinds = 4, kOne = kOrderKinds, kOneToo, kAll, kRun, kFollow, kKinds };
constexpr size_t kLongestRun = 16;

class ModuleSearch {
 public:
  ModuleSearch(const ModuleProblem& m, uint64_t seed)
      : m_(m),
        model_(*m.model),
        n_(m.tasks.size()),
        k_(model_.num_devices()),
        requests_(model_.num_requests()),
        random_(seed),
        rest_(module_paths(m).rest),
        kept_(n_, k_, requests_),
        trial_(n_, k_, requests_) {
    std::vector<uint32_t> place(model_.num_tasks(), kOutside);
    for (uint32_t p = 0; p < n_; ++p) place[m.tasks[p]] = p;
    in_.resize(n_);
    out_.resize(n_);
    sources_.resize(n_);
    for (uint32_t p = 0; p < n_; ++p) {
      for (const TaskModel::Edge& e : model_.in(m.tasks[p])) {
        if (place[e.src] == kOutside) continue;
        in_[p].push_back({place[e.src], e.bytes});
        out_[place[e.src]].push_back(p);
      }
    }
    for (const auto& s : m.sources) sources_[s.place].push_back(&s);
  }

  ModuleAnswer run(const ModuleAnswer& start, size_t moves_per_gene, const Deadline& deadline) {
    load(start.batches);
    double now = value(kImpossible), best = now;
    keep();
    auto best_order = order_;
    auto best_genes = genes_;
    const size_t moves = moves_per_gene * n_ * requests_;
    const double seconds = deadline.seconds_left();
    double share = 0, temperature = 0;
    const double hot = kHot * now, cold = kCold * now;
    for (size_t i = 0; i < moves; ++i) {
      if (i % 256 == 0) {
        if (deadline.should_stop()) break;
        // It cools down by the end of the moves or of the time, whichever comes first.
        share = static_cast<double>(i) / static_cast<double>(moves);
        if (seconds < kImpossible) share = std::max(share, 1 - deadline.seconds_left() / seconds);
        temperature = hot * std::pow(cold / hot, share);
      }
      if (!propose()) continue;
      // Accepted with probability exp((now - next) / temperature): drawn first, so that what is worse than
      // that is not timed to the end.
      const double limit = now - temperature * std::log(1 - random_.unit());
      const double next = value(limit);
      if (next <= limit) {
        keep();
        now = next;
        if (now < best) best = now, best_order = order_, best_genes = genes_;
      } else {
        undo();
      }
    }
    order_ = best_order;
    genes_ = best_genes;
    ModuleAnswer answer = start;
    auto batches = decisions();
    const double found = module_value(m_, batches);
    if (found < answer.value_us) answer.value_us = found, answer.batches = std::move(batches);
    return answer;
  }

 private:
  struct In {
    uint32_t from;
    int64_t bytes;
  };

  void load(const std::vector<Batch>& batches) {
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
      missing[p] = static_cast<uint32_t>(in_[p].size());
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

  // Before a move: what it changed and where the first change is.
  void begin_move() {
    changed_.clear();
    moved_from_ = moved_to_ = 0;
    from_ = n_;
  }

  void set_gene(uint32_t p, size_t l, uint32_t d) {
    const size_t gene = p * requests_ + l;
    if (genes_[gene] == d) return;
    changed_.push_back({gene, genes_[gene]});
    genes_[gene] = d;
    from_ = std::min<size_t>(from_, at_[p]);
  }

  bool possible(uint32_t p, uint32_t d) const {
    return m_.allows(p, d) && model_.us(m_.tasks[p], d, 1) < kImpossible;
  }

  // A fixed task has all its requests on one device, which possible() sees to.
  bool propose() {
    begin_move();
    const auto p = static_cast<uint32_t>(random_.below(n_));
    const uint64_t kind = random_.below(kKinds);
    if (kind < kOrderKinds) return propose_place(p);
    const size_t l = random_.below(requests_);
    if (requests_ > 1 && kind == kFollow) {
      follow(p, l);
    } else {
      const auto d = static_cast<uint32_t>(random_.below(k_));
      if (!possible(p, d)) return false;
      if (kind == kAll || kind == kRun) {
        for (size_t r = 0; r < requests_; ++r) set_gene(p, r, d);
      } else {
        set_gene(p, l, d);
      }
      if (kind == kRun) {
        for (const uint32_t q : out_[p]) {
          if (!possible(q, d)) continue;
          for (size_t r = 0; r < requests_; ++r) set_gene(q, r, d);
          break;
        }
      }
    }
    return !changed_.empty();
  }

  // Request l goes with another one from task p on, for some tasks.
  void follow(uint32_t p, size_t l) {
    const size_t leader = random_.below(requests_);
    const size_t end = std::min<size_t>(n_, at_[p] + 1 + random_.below(kLongestRun));
    for (size_t i = at_[p]; i < end; ++i) set_gene(order_[i], l, genes_[order_[i] * requests_ + leader]);
  }

  bool propose_place(uint32_t p) {
    uint32_t lo = 0, hi = static_cast<uint32_t>(n_ - 1);
    for (const In& e : in_[p]) lo = std::max(lo, at_[e.from] + 1);
    for (const uint32_t q : out_[p]) hi = std::min(hi, at_[q] - 1);
    if (lo >= hi) return false;
    const auto to = static_cast<uint32_t>(random_.between(lo, hi));
    if (to == at_[p]) return false;
    moved_from_ = at_[p];
    moved_to_ = to;
    from_ = std::min(moved_from_, moved_to_);
    rotate(moved_from_, moved_to_);
    return true;
  }

  void undo() {
    for (size_t i = changed_.size(); i-- > 0;) genes_[changed_[i].first] = changed_[i].second;
    if (moved_from_ != moved_to_) rotate(moved_to_, moved_from_);
  }

  void rotate(uint32_t from, uint32_t to) {
    const auto begin = order_.begin();
    if (from < to)
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    else
      std::rotate(begin + to, begin + from, begin + from + 1);
    for (uint32_t i = std::min(from, to); i <= std::max(from, to); ++i) at_[order_[i]] = i;
  }

  // When the devices are free and everything known so far ends, before each place of the order; when requests
  // of tasks finish.
  struct Times {
    Times(size_t n, size_t k, size_t requests) : free((n + 1) * k), worst(n + 1, 0.0), finish(n * requests) {}
    std::vector<double> free, worst, finish;
  };

  // From the first changed place on; kImpossible where the value must be above the limit.
  double value(double limit) {
    if (!timed_) {
      from_ = 0;
      for (size_t d = 0; d < k_; ++d) trial_.free[d] = m_.free_at(d);
      trial_.worst[0] = 0;
    } else {
      std::copy_n(kept_.free.data() + from_ * k_, k_, trial_.free.data() + from_ * k_);
      trial_.worst[from_] = kept_.worst[from_];
    }
    limit *= kRounding;
    for (size_t i = from_; i < n_; ++i) {
      const uint32_t p = order_[i];
      const size_t row = size_t{p} * requests_;
      double* free = trial_.free.data() + (i + 1) * k_;
      std::copy_n(trial_.free.data() + i * k_, k_, free);
      double worst = trial_.worst[i];
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
          tail = std::max(tail, m_.tail(p, r, d));
        }
        for (const In& e : in_[p]) {
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
        if (start + rest_[p * k_ + d] > limit) return kImpossible;
        const double end = start + model_.us(m_.tasks[p], d, count);
        free[d] = end;
        worst = std::max(worst, end + tail);
        for (uint32_t left = members; left != 0; left &= left - 1)
          trial_.finish[row + static_cast<size_t>(std::countr_zero(left))] = end;
        done |= members;
      }
      trial_.worst[i + 1] = worst;
    }
    return trial_.worst[n_];
  }

  void keep() {
    for (size_t i = from_; i < n_; ++i) {
      const size_t row = size_t{order_[i]} * requests_;
      std::copy_n(trial_.finish.data() + row, requests_, kept_.finish.data() + row);
    }
    const auto from = static_cast<long>(from_);
    std::copy(trial_.free.begin() + from * static_cast<long>(k_), trial_.free.end(),
              kept_.free.begin() + from * static_cast<long>(k_));
    std::copy(trial_.worst.begin() + from, trial_.worst.end(), kept_.worst.begin() + from);
    timed_ = true;
  }

  std::vector<Batch> decisions() const {
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
    // By start; equal starts keep their order, which is topological.
    std::vector<double> starts;
    module_value(m_, batches, &starts);
    if (starts.size() < batches.size()) return batches;
    return by_start(batches, starts);
  }

  const ModuleProblem& m_;
  const TaskModel& model_;
  const size_t n_, k_, requests_;
  Random random_;
  std::vector<std::vector<In>> in_;
  std::vector<std::vector<uint32_t>> out_;
  std::vector<std::vector<const ModuleProblem::Source*>> sources_;
  std::vector<uint32_t> genes_, order_, at_;  // (place, request) -> device; places in order; its inverse
  const std::vector<double> rest_;            // place x device: least time from its start to the end
  Times kept_, trial_;
  bool timed_ = false;
  // The move that is tried.
  std::vector<std::pair<size_t, uint32_t>> changed_;  // gene, its former device
  uint32_t moved_from_ = 0, moved_to_ = 0;
  size_t from_ = 0;  // the first changed place
};

}  // namespace

ModuleAnswer module_start(const ModuleProblem& m, const ModuleAnswer& start, const ModuleLimits& limits,
                          double share, size_t moves_per_gene) {
  ModuleAnswer answer = module_by_list(m);
  if (start.value_us < answer.value_us) answer = start;
  answer.bound_us = module_bound(m);
  answer.optimal = answer.value_us < kImpossible && answer.value_us <= answer.bound_us * (1 + 1e-12);
  if (!(answer.value_us < kImpossible) || answer.optimal || m.tasks.empty()) return answer;
  if (limits.deadline.should_stop()) return answer;
  const Deadline deadline = limits.deadline.sooner(share * limits.deadline.seconds_left());
  ModuleAnswer found = ModuleSearch(m, limits.seed).run(answer, moves_per_gene, deadline);
  found.optimal = found.value_us <= found.bound_us * (1 + 1e-12);
  return found;
}

}  // namespace heddle
