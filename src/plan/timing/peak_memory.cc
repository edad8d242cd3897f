// The memory model of docs/execution-model.md. Parameters count once per pool. A tensor counts from its
// production or arrival until its last reader in that pool is done. Cold: parameters count from load to drop.
#include <algorithm>
#include <limits>

#include "evaluation.h"

namespace heddle {
namespace {

// The interval during which a tensor of one lane is in one pool.
struct Residency {
  int32_t next = -1;  // the same tensor in another pool
  int32_t pool = 0;
  int64_t bytes = 0;
  double start = 0, finish = 0;
  int lane = 0;
};

// The interval during which a parameter is in one pool (cold).
struct ParamResidency {
  bool there = false, used = false, kept = false;
  double start = 0, last_use = 0;
};

struct Change {
  double time;
  int64_t bytes;
};

class PeakMemory {
 public:
  PeakMemory(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : problem_(problem),
        graph_(*problem.graph),
        cluster_(*problem.cluster),
        plan_(plan),
        timeline_(timeline),
        cold_(problem.objective == Objective::kColdLatency),
        lanes_(plan.lane_shares.size()),
        first_(lanes_ * graph_.num_tensors(), -1),
        is_output_(graph_.num_tensors(), 0),
        changes_(lanes_ * static_cast<size_t>(cluster_.num_memory_pools())) {
    for (const TensorId t : graph_.outputs()) is_output_[t.index()] = 1;
  }

  std::vector<int64_t> compute() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) visit(i);
    for (const Residency& s : residencies_) {
      add(static_cast<size_t>(s.lane), static_cast<size_t>(s.pool), s.start, s.finish, s.bytes);
    }
    const auto pools = static_cast<size_t>(cluster_.num_memory_pools());
    for (size_t i = 0; i < params_.size(); ++i) {
      const ParamResidency& s = params_[i];
      if (!s.there) continue;
      const double end = s.used && !s.kept ? s.last_use : std::numeric_limits<double>::infinity();
      add(0, i / graph_.num_params(), s.start, end, graph_.params()[i % graph_.num_params()].bytes);
    }
    std::vector<int64_t> peaks(pools, 0);
    for (size_t lane = 0; lane < lanes_; ++lane) {
      for (size_t pool = 0; pool < pools; ++pool)
        peaks[pool] = plus_bytes(peaks[pool], peak_of(changes_[lane * pools + pool]));
    }
    if (!cold_) add_all_params(peaks);
    return peaks;
  }

 private:
  void add(size_t lane, size_t pool, double start, double finish, int64_t bytes) {
    if (bytes == 0 || !(start < finish)) return;
    auto& changes = changes_[lane * static_cast<size_t>(cluster_.num_memory_pools()) + pool];
    changes.push_back({start, bytes});
    changes.push_back({finish, -bytes});
  }

  // The residency of `t` in `pool`, created on first use.
  Residency& residency(size_t lane, TensorId t, int pool, double start) {
    int32_t& head = first_[lane * graph_.num_tensors() + t.index()];
    for (int32_t i = head; i >= 0; i = residencies_[static_cast<size_t>(i)].next) {
      if (residencies_[static_cast<size_t>(i)].pool == pool) return residencies_[static_cast<size_t>(i)];
    }
    residencies_.push_back({head, pool, graph_.tensor(t).bytes, start, start, static_cast<int>(lane)});
    head = static_cast<int32_t>(residencies_.size()) - 1;
    return residencies_.back();
  }

  void visit(size_t i) {
    const Step& step = plan_.steps[i];
    const Segment& segment = plan_.segments[step.segment.index()];
    const auto lane = static_cast<size_t>(segment.lane);
    const double start = timeline_.start_us[i], finish = timeline_.finish_us[i];
    const int pool = cluster_.memory_pool(step.to);
    if (step.kind == StepKind::kTransfer) {
      Residency& to = residency(lane, step.tensor, pool, start);
      to.start = std::min(to.start, start);
      to.finish = std::max(to.finish, finish);
      Residency& from = residency(lane, step.tensor, cluster_.memory_pool(step.from), start);
      from.finish = std::max(from.finish, finish);
    } else if (step.kind == StepKind::kRun) {
      run(segment, lane, pool, start, finish);
    } else {
      for (const OpId op : segment.ops) note_params(graph_.op(op), pool, start);
    }
  }

  void run(const Segment& segment, size_t lane, int pool, double start, double finish) {
    const bool preloaded = cold_ && !needs_load(cluster_, segment.device);
    const bool loaded = cold_ && !preloaded && !segment.host_access;
    for (const OpId id : segment.ops) {
      const Op& op = graph_.op(id);
      for (const TensorId t : op.inputs) {
        const OpId producer = graph_.tensor(t).producer;
        if (producer.valid() && inside(segment, producer)) continue;
        // A model input is present from the start; what came without a transfer step, from the run that reads it.
        const double since = producer.valid() ? start : 0;
        Residency& s = residency(lane, t, pool, since);
        s.start = std::min(s.start, since);
        s.finish = std::max(s.finish, finish);
      }
      if (preloaded) note_params(op, pool, 0);
      if (loaded) use_params(op, pool, finish, segment.drops_params);
    }
    for (const OpId id : segment.ops) {
      for (const TensorId t : graph_.op(id).outputs) {
        if (segment.ops.size() > 1 && internal(segment, t)) continue;
        Residency& s = residency(lane, t, pool, start);
        s.finish = std::max(s.finish, is_output_[t.index()] ? timeline_.makespan_us : finish);
      }
    }
    if (segment.ops.size() > 1) add(lane, static_cast<size_t>(pool), start, finish, workspace(segment));
  }

  static bool inside(const Segment& segment, OpId op) {
    return std::binary_search(segment.ops.begin(), segment.ops.end(), op);
  }
  bool internal(const Segment& segment, TensorId t) const {
    if (is_output_[t.index()]) return false;
    for (const OpId reader : graph_.tensor(t).consumers) {
      if (!inside(segment, reader)) return false;
    }
    return true;
  }

  // Peak of the tensors internal to the segment when its ops run one by one in topological order.
  int64_t workspace(const Segment& segment) const {
    std::vector<int> positions;
    for (const OpId op : segment.ops) positions.push_back(graph_.topological_position(op));
    std::sort(positions.begin(), positions.end());
    const auto place = [&](OpId op) {
      const int at = graph_.topological_position(op);
      return static_cast<size_t>(std::lower_bound(positions.begin(), positions.end(), at) -
                                 positions.begin());
    };
    std::vector<int64_t> delta(positions.size() + 1, 0);
    for (const OpId op : segment.ops) {
      for (const TensorId t : graph_.op(op).outputs) {
        if (!internal(segment, t)) continue;
        size_t last = place(op);
        for (const OpId reader : graph_.tensor(t).consumers) last = std::max(last, place(reader));
        delta[place(op)] = plus_bytes(delta[place(op)], graph_.tensor(t).bytes);
        delta[last + 1] = plus_bytes(delta[last + 1], -graph_.tensor(t).bytes);
      }
    }
    int64_t now = 0, most = 0;
    for (const int64_t d : delta) most = std::max(most, now = plus_bytes(now, d));
    return most;
  }

  ParamResidency& param(int pool, ParamId p) {
    if (params_.empty())
      params_.resize(graph_.num_params() * static_cast<size_t>(cluster_.num_memory_pools()));
    return params_[static_cast<size_t>(pool) * graph_.num_params() + p.index()];
  }

  // Cold: a parameter counts from the start of the first load that brings it.
  void note_params(const Op& op, int pool, double start) {
    for (const ParamId p : op.params) {
      ParamResidency& residency = param(pool, p);
      if (!residency.there) residency.start = start;
      residency.there = true;
    }
  }

  // Parameters stay until the end unless every user there drops them. Resident ones are there from time 0.
  void use_params(const Op& op, int pool, double finish, bool drops) {
    for (const ParamId p : op.params) {
      ParamResidency& residency = param(pool, p);
      if (!residency.used && problem_.is_resident(pool, p)) {
        residency.there = true;
        residency.start = 0;
      }
      residency.used = true;
      residency.kept = residency.kept || !drops;
      residency.last_use = std::max(residency.last_use, finish);
    }
  }

  void add_all_params(std::vector<int64_t>& peaks) const {
    std::vector<uint8_t> there(graph_.num_params() * peaks.size(), 0);
    for (const Segment& segment : plan_.segments) {
      const auto pool = static_cast<size_t>(cluster_.memory_pool(segment.device));
      for (const OpId op : segment.ops) {
        for (const ParamId p : graph_.op(op).params) {
          auto& seen = there[pool * graph_.num_params() + p.index()];
          if (!seen) peaks[pool] = plus_bytes(peaks[pool], graph_.param(p).bytes);
          seen = 1;
        }
      }
    }
  }

  // Peak of the running sum; at equal times memory is freed before it is allocated.
  static int64_t peak_of(std::vector<Change>& changes) {
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    int64_t now = 0, most = 0;
    for (const Change& c : changes) most = std::max(most, now = plus_bytes(now, c.bytes));
    return most;
  }

  const Problem& problem_;
  const Graph& graph_;
  const Cluster& cluster_;
  const Plan& plan_;
  const Timeline& timeline_;
  const bool cold_;
  const size_t lanes_;
  std::vector<int32_t> first_;  // lane x tensor: head of its list of residencies
  std::vector<uint8_t> is_output_;
  std::vector<std::vector<Change>> changes_;  // lane x pool
  std::vector<Residency> residencies_;
  std::vector<ParamResidency> params_;  // pool x param
};

}  // namespace

std::vector<int64_t> peak_memory(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  return PeakMemory(problem, plan, timeline).compute();
}

}  // namespace heddle
