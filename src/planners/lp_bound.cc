// docs/bounds.md, section 7. x(v, i) is the part of op v on device i, T the objective.
#include "lp_bound.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/solve/milp.h"

namespace heddle {
namespace {

// Beyond so many entries HiGHS takes minutes.
constexpr double kMostEntries = 400'000;
// HiGHS keeps rows and duals within 1e-7, relative to the largest of them.
constexpr double kSafety = 1e-6;

class Program {
 public:
  Program(const FlatProblem& flat, const Relaxation& relaxation)
      : flat_(flat), r_(relaxation), n_(flat.num_ops()), k_(flat.num_devices()) {
    // Times of about one are what solvers are good at.
    for (size_t v = 0; v < n_; ++v) {
      double least = kImpossible;
      for (size_t i = 0; i < k_; ++i) least = std::min(least, r_.t(v, i));
      unit_ += std::isfinite(least) ? least : 0;
    }
    if (!(unit_ > 0)) unit_ = 1;
  }

  Milp build() {
    total_ = milp_.add_continuous(0, kNoBound, "T");
    milp_.add_cost(total_, 1);
    add_placement();
    add_area();
    if (flat_.problem().objective == Objective::kThroughput) {
      if (flat_.problem().execution.link_contention) {
        add_traffic(true);
        add_traffic(false);
      }
    } else {
      add_times();
    }
    return std::move(milp_);
  }
  double unit_us() const { return unit_; }

 private:
  bool possible(size_t v, size_t i) const { return std::isfinite(r_.t(v, i)); }
  Var x(size_t v, size_t i) const { return x_[v * k_ + i]; }

  void add_placement() {
    for (size_t v = 0; v < n_; ++v) {
      std::vector<Term> one;
      for (size_t i = 0; i < k_; ++i) {
        x_.push_back(milp_.add_continuous(0, possible(v, i) ? 1 : 0));
        one.push_back({x_.back(), 1});
      }
      milp_.equal(std::move(one), 1);
    }
  }

  void add_area() {
    for (const auto& set : r_.exclusive) {
      std::vector<Term> row{{total_, 1}};
      for (size_t v = 0; v < n_; ++v) {
        for (const uint32_t i : set) {
          if (possible(v, i)) row.push_back({x(v, i), -r_.t(v, i) / unit_});
        }
      }
      milp_.at_least(std::move(row), 0);
    }
  }

  // Starts, a path's transfers included: what of u is on i and not of w pays the cheapest way out of i, and
  // likewise what of w is on i and not of u the cheapest way in.
  void add_times() {
    for (size_t v = 0; v < n_; ++v) {
      start_.push_back(milp_.add_continuous(0, kNoBound));
      std::vector<Term> head{{start_[v], 1}}, tail{{total_, 1}, {start_[v], -1}};
      for (size_t i = 0; i < k_; ++i) {
        if (!possible(v, i)) continue;
        head.push_back({x(v, i), -(r_.earliest_finish[v * k_ + i] - r_.t(v, i)) / unit_});
        tail.push_back({x(v, i), -r_.remaining[v * k_ + i] / unit_});
      }
      milp_.at_least(std::move(head), 0);
      milp_.at_least(std::move(tail), 0);
    }
    for (size_t w = 0; w < n_; ++w) {
      for (const uint32_t t : flat_.inputs(w)) add_read(flat_.producer(t), w, flat_.bytes(t));
    }
  }
  void add_read(size_t u, size_t w, int64_t bytes) {
    for (const bool out : {true, false}) {
      std::vector<Term> row{{start_[w], 1}, {start_[u], -1}};
      for (size_t i = 0; i < k_; ++i) {
        if (possible(u, i)) row.push_back({x(u, i), -r_.t(u, i) / unit_});
      }
      bool pays = false;
      for (size_t i = 0; i < k_; ++i) {
        double cheapest = kImpossible;
        for (size_t j = 0; j < k_; ++j) {
          if (j != i) cheapest = std::min(cheapest, out ? r_.way_us(i, j, bytes) : r_.way_us(j, i, bytes));
        }
        if (!(cheapest > 0) || !std::isfinite(cheapest)) continue;
        const Var moved = milp_.add_continuous(0, 1);
        milp_.at_least(out ? std::vector<Term>{{moved, 1}, {x(u, i), -1}, {x(w, i), 1}}
                           : std::vector<Term>{{moved, 1}, {x(w, i), -1}, {x(u, i), 1}},
                       0);
        row.push_back({moved, -cheapest / unit_});
        pays = true;
      }
      if (out || pays) milp_.at_least(std::move(row), 0);
    }
  }

  // All that leaves (or enters) a node of the cluster goes over the links that it has.
  void add_traffic(bool out) {
    const Cluster& cluster = *flat_.problem().cluster;
    std::map<NodeId, std::vector<uint32_t>> at;
    for (uint32_t i = 0; i < k_; ++i) at[cluster.device_node(flat_.device(i))].push_back(i);
    for (const auto& [node, here] : at) {
      double bytes_per_us = 0;
      for (const Link& link : cluster.links()) {
        double bandwidth = link.bytes_per_s;
        if (link.bus.valid() && cluster.bus(link.bus).bytes_per_s > 0)
          bandwidth = std::min(bandwidth, cluster.bus(link.bus).bytes_per_s);
        const bool leaves = link.a == node || (link.b == node && link.duplex != Duplex::kOneWay);
        const bool enters = link.b == node || (link.a == node && link.duplex != Duplex::kOneWay);
        if (out ? leaves : enters) bytes_per_us += bandwidth * 1e-6;
      }
      if (!(bytes_per_us > 0) || !std::isfinite(bytes_per_us)) continue;
      // Where the tensor is at no cost: here, and wherever it passes freely.
      std::vector<uint8_t> free(k_, 0);
      for (const uint32_t i : here) {
        for (size_t j = 0; j < k_; ++j)
          free[j] |= j == i || (out ? flat_.way(i, j) : flat_.way(j, i)).passage == Passage::kFree ? 1 : 0;
      }
      std::vector<Term> row{{total_, 1}};
      for (size_t t = 0; t < flat_.num_tensors(); ++t) {
        if (flat_.producer(t) == UINT32_MAX || flat_.readers(t).empty() || flat_.bytes(t) == 0) continue;
        const Var moved = milp_.add_continuous(0, 1);
        for (const uint32_t w : flat_.readers(t)) {
          const size_t inside = out ? flat_.producer(t) : w, outside = out ? w : flat_.producer(t);
          if (inside == outside) continue;
          std::vector<Term> terms{{moved, 1}};
          for (const uint32_t i : here) terms.push_back({x(inside, i), -1});
          for (uint32_t j = 0; j < k_; ++j) {
            if (free[j]) terms.push_back({x(outside, j), 1});
          }
          milp_.at_least(std::move(terms), 0);
        }
        row.push_back({moved, -static_cast<double>(flat_.bytes(t)) / bytes_per_us / unit_});
      }
      milp_.at_least(std::move(row), 0);
    }
  }

  const FlatProblem& flat_;
  const Relaxation& r_;
  const size_t n_, k_;
  double unit_ = 0;
  Milp milp_;
  Var total_;
  std::vector<Var> x_, start_;
};

}  // namespace

Bound lp_bound(const FlatProblem& flat, const Relaxation& relaxation, const Deadline& deadline) {
  const Bound none{0, "linear program"};
  const auto k = static_cast<double>(flat.num_devices());
  if ((static_cast<double>(flat.num_reads()) * 8 + static_cast<double>(flat.num_ops()) * 5) * k >
      kMostEntries)
    return none;
  Program program(flat, relaxation);
  const Milp milp = program.build();
  SolveOptions options;
  options.deadline = deadline;
  const auto solution = solve_relaxation(milp, options);
  if (!solution.ok() || solution->status != SolveStatus::kOptimal) return none;
  return {std::max(0.0, solution->objective * (1 - kSafety) * program.unit_us()), "linear program"};
}

}  // namespace heddle
