// Where the program of stages (cp_stages.h) begins: a plan's stages and their least times in the relaxation, in
// whole ticks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "heddle/plan/problem.h"
#include "heddle/plan/relaxation.h"
#include "heddle/plan/stage_list.h"

namespace heddle {

constexpr int64_t kMostTicks = int64_t{1} << 40;

// The relaxation's times in ticks.
class StageTicks {
 public:
  StageTicks(const Problem& problem, const Relaxation& relaxation, double tick_us)
      : r(relaxation),
        n(problem.graph->num_ops()),
        k(relaxation.devices.size()),
        problem_(problem),
        tick_us_(tick_us),
        time_us_(problem.costs->bound_times()) {}

  double us(double ticks) const { return ticks * tick_us_; }
  // No plan has v where what it reads, or what reads it, cannot come or go; and ticks() takes finite times
  // only.
  bool possible(size_t v, size_t i) const {
    return r.t(v, i) < kImpossible && r.earliest_finish[v * k + i] < kImpossible &&
           r.remaining[v * k + i] < kImpossible;
  }
  int64_t time(size_t v, size_t i) const { return ticks(time_us(v, i)); }
  // The relaxation's times are work where stages are allowed: docs/bounds.md, "Stages".
  int64_t work(size_t v, size_t i) const { return ticks(r.t(v, i)); }
  int64_t head(size_t v, size_t i) const { return ticks(r.earliest_finish[v * k + i] - r.t(v, i)); }
  int64_t tail(size_t v, size_t i) const {
    return time(v, i) + std::max<int64_t>(0, ticks(r.remaining[v * k + i] - r.t(v, i)));
  }
  int64_t way(size_t i, size_t j, int64_t bytes) const {
    const double us = r.way_us(i, j, bytes);
    return std::isfinite(us) ? std::min(ticks(us), kMostTicks) : kMostTicks;
  }
  bool shares_pay(size_t i) const { return sharing(i).serial + sharing(i).overlap <= 1; }
  int64_t serial(size_t v, size_t i) const { return ticks(sharing(i).serial * time_us(v, i)); }
  int64_t overlap(size_t v, size_t i) const { return ticks(sharing(i).overlap * time_us(v, i)); }

  template <typename Visit>
  void for_reads(size_t w, const Visit& visit) const {
    for (const TensorId t : problem_.graph->op(OpId(w)).inputs) {
      const Tensor& tensor = problem_.graph->tensor(t);
      if (tensor.producer.valid()) visit(tensor.producer.index(), tensor.bytes);
    }
  }

  const Relaxation& r;
  const size_t n, k;

 private:
  int64_t ticks(double us) const { return static_cast<int64_t>(std::floor(us / tick_us_)); }
  double time_us(size_t v, size_t i) const {
    return time_us_[v * problem_.cluster->num_devices() + r.devices[i].index()];
  }
  StageModel sharing(size_t i) const { return problem_.costs->stage_model(r.devices[i]); }

  const Problem& problem_;
  const double tick_us_;
  const std::vector<double> time_us_;
};

// A plan's devices and stages, and their least times.
class StageHint {
 public:
  StageHint(const StageTicks& ticks, const Problem& problem, const std::vector<ListedStage>& stages);

  bool fits = false;                              // it names devices of the relaxation only
  std::vector<uint32_t> position, device, stage;  // per op; position: topological
  std::vector<int64_t> begin, own, piece, finish;
  int64_t horizon = 0;

 private:
  bool time(const StageTicks& t, size_t stages);
};

}  // namespace heddle
