// The decomposition is exact: between two serial ops a and b, everything of the block starts after a has
// ended and ends before b starts, so that a block's best length depends on the devices of a and b alone.

#include <algorithm>
#include <cmath>

#include "flow_methods.h"
#include "flow_timer.h"
#include "heddle/solve/solution.h"

namespace heddle {
namespace {

// Of annealing before a block's first solve; doubled with each further one.
constexpr int64_t kBlockMovesPerTask = 600;
// Seconds of a block's first solve, without a deadline units of work; each further one has more.
constexpr double kFirstSlice = 1.0;
constexpr double kSliceGrowth = 3;
constexpr double kSliceShare = 0.3;  // of the time left, where that is more

// Ops first..last of the workload, op first without duration: the block's time counts from its end.
FlowWorkload cut_out(const FlowWorkload& w, uint32_t first, uint32_t last, bool entry) {
  FlowWorkload part;
  part.name = w.name;
  part.ticks_per_us = w.ticks_per_us;
  part.memory = w.memory;
  part.ops.assign(w.ops.begin() + first, w.ops.begin() + last + 1);
  for (auto& op : part.ops) op.memory = 0;
  if (entry) std::fill(part.ops[0].ticks.begin(), part.ops[0].ticks.end(), 0);
  for (const auto& f : w.flows) {
    if (f.from < first || f.to > last || f.to <= first) continue;
    part.flows.push_back(f);
    part.flows.back().from -= first;
    part.flows.back().to -= first;
  }
  return part;
}

// One block with both ends' devices given.
struct BlockLength {
  int64_t bound = 0, best = kNever;
  std::optional<FlowSchedule> schedule;
  int solves = 0;
  bool open() const { return bound < best; }
};

struct FlowBlock {
  uint32_t first = 0, last = 0;      // ops of the whole workload; first is the block before's last (if any)
  bool entry = false, exit = false;  // serial ops at its ends
  FlowWorkload part;
  std::vector<uint32_t> flows;       // of the whole workload, by number in the part
  std::vector<BlockLength> lengths;  // [device of entry or 0][device of exit or 0]
};

// Ops that every other op either feeds or follows, with no flow past them: nothing runs beside such an op,
// and no port is busy across it. Ascending. O(ops + flows).
std::vector<uint32_t> serial_ops(const FlowWorkload& w) {
  const size_t n = w.num_ops();
  // Ops are in a topological order: op c is serial when no flow leads from before it to behind it, no op
  // before it is without readers and none behind it without feeders.
  std::vector<int64_t> past(n + 1, 0);
  std::vector<uint8_t> has_reader(n, 0), has_feeder(n, 0);
  for (const auto& f : w.flows) {
    has_reader[f.from] = has_feeder[f.to] = 1;
    ++past[f.from + 1];
    --past[f.to];
  }
  std::vector<uint32_t> serial;
  size_t last_source = 0, first_sink = n;
  for (size_t v = 0; v < n; ++v) {
    if (!has_feeder[v]) last_source = v;
    if (!has_reader[v]) first_sink = std::min(first_sink, v);
  }
  int64_t now = 0;
  for (uint32_t c = 0; c < n; ++c) {
    now += past[c];
    if (now == 0 && c >= last_source && c <= first_sink) serial.push_back(c);
  }
  return serial;
}

class BlockProgram {
 public:
  BlockProgram(const FlowWorkload& w, const FlowSchedule& start, const FlowBlockOptions& options)
      : w_(w), start_(start), options_(options), k_(w.num_devices()) {}

  Result<std::optional<FlowBlockResult>> run() {
    for (const double room : w_.memory) {
      double total = 0;
      for (const auto& op : w_.ops) total += op.memory;
      if (total > room) return std::optional<FlowBlockResult>();
    }
    split();
    if (blocks_.size() < 2) return std::optional<FlowBlockResult>();
    FlowBlockResult result;
    result.blocks = static_cast<int64_t>(blocks_.size());
    for (auto& block : blocks_) {
      first_bounds(block);
      adopt_start(block);
    }
    while (true) {
      const auto low = distances(true);
      result.bound = low.total;
      const auto high = distances(false);
      if (options_.on_progress) options_.on_progress(high.total, low.total, claimed_by_);
      if (low.total >= high.total || options_.deadline.should_stop() || work_left_ <= 0) break;
      const auto open = open_on_path(low);
      if (!open) break;
      HEDDLE_RETURN_IF_ERROR(improve(open->first, open->second, low, high.total));
      ++result.solves;
      result.proven += !blocks_[open->first].lengths[open->second].open();
    }
    const auto high = distances(false);
    if (high.total < start_.makespan) result.schedule = compose(high);
    result.bound = std::min(result.bound, std::min(high.total, start_.makespan));
    result.claimed_by = claimed_by_;
    return std::optional<FlowBlockResult>(std::move(result));
  }

 private:
  struct BlockPath {
    std::vector<std::vector<int64_t>> before, after;  // [block border][device]
    std::vector<size_t> lengths;                      // the path's length in each block
    int64_t total = 0;
  };

  void split() {
    auto cuts = serial_ops(w_);
    const auto last = static_cast<uint32_t>(w_.num_ops() - 1);
    uint32_t first = 0;
    bool entry = false;
    const auto add = [&](uint32_t end, bool exit) {
      FlowBlock b;
      b.first = first;
      b.last = end;
      b.entry = entry;
      b.exit = exit;
      b.part = cut_out(w_, first, end, entry);
      for (uint32_t q = 0; q < w_.num_flows(); ++q) {
        const Flow& f = w_.flows[q];
        if (f.from >= first && f.to <= end && f.to > first) b.flows.push_back(q);
      }
      blocks_.push_back(std::move(b));
      first = end;
      entry = true;
    };
    for (const uint32_t c : cuts) add(c, true);
    if (cuts.empty() || cuts.back() != last) add(last, false);
  }

  size_t entries(const FlowBlock& b) const { return b.entry ? k_ : 1; }
  size_t exits(const FlowBlock& b) const { return b.exit ? k_ : 1; }
  std::vector<int32_t> fixed(const FlowBlock& b, size_t length) const {
    std::vector<int32_t> device(b.part.num_ops(), kAnyDevice);
    if (b.entry) device.front() = static_cast<int32_t>(length / exits(b));
    if (b.exit) device.back() = static_cast<int32_t>(length % exits(b));
    return device;
  }

  void first_bounds(FlowBlock& b) {
    b.lengths.resize(entries(b) * exits(b));
    const auto remaining = least_remaining(b.part);
    for (size_t i = 0; i < b.lengths.size(); ++i) {
      b.lengths[i].bound = heaviest_path(b.part, least_heads(b.part, fixed(b, i)), remaining);
      // One op after another: there is one schedule only.
      if (b.part.num_ops() <= 2 && !options_.deadline.should_stop()) search(b, i);
    }
  }

  // The whole schedule's part is a first one for the block. Everything in it lies between the block's ends.
  void adopt_start(FlowBlock& b) {
    FlowSchedule s;
    const int64_t from =
        b.entry ? start_.op_start[b.first] + w_.ops[b.first].ticks[start_.device[b.first]] : 0;
    for (uint32_t v = b.first; v <= b.last; ++v) {
      s.device.push_back(start_.device[v]);
      s.op_start.push_back(b.entry && v == b.first ? 0 : start_.op_start[v] - from);
    }
    for (const uint32_t q : b.flows) s.flow_start.push_back(start_.flow_start[q] - from);
    auto timed = time_flows(b.part, decisions_of(b.part, s));
    const size_t length = (b.entry ? s.device.front() * exits(b) : 0) + (b.exit ? s.device.back() : 0);
    take(b.lengths[length], std::move(timed));
  }

  void take(BlockLength& length, FlowSchedule schedule) {
    if (schedule.makespan >= length.best) return;
    length.best = schedule.makespan;
    length.schedule = std::move(schedule);
  }

  // Annealing with the ends' devices fixed, from what is known.
  void search(FlowBlock& b, size_t i) {
    const auto device = fixed(b, i);
    FlowAnnealOptions anneal;
    const int solves = std::min(b.lengths[i].solves, 10);
    anneal.seed = options_.seed + static_cast<uint64_t>(solves);
    anneal.deadline = options_.deadline;
    anneal.moves = (kBlockMovesPerTask << solves) * static_cast<int64_t>(b.part.num_tasks());
    anneal.target = b.lengths[i].bound;
    anneal.fixed.assign(b.part.num_ops(), 0);
    std::optional<FlowSchedule> best;
    FlowDecisions decisions;
    auto starts = construct_flows(b.part);
    if (b.lengths[i].schedule) starts.push_back(decisions_of(b.part, *b.lengths[i].schedule));
    for (auto& d : starts) {
      for (size_t v = 0; v < device.size(); ++v) {
        if (device[v] == kAnyDevice) continue;
        d.device[v] = static_cast<uint32_t>(device[v]);
        anneal.fixed[v] = 1;
      }
      auto timed = time_flows(b.part, d);
      if (best && timed.makespan >= best->makespan) continue;
      best = std::move(timed);
      decisions = std::move(d);
    }
    if (!best) return;
    if (b.part.num_ops() > 2) {
      const auto annealed = anneal_flows(b.part, std::move(decisions), anneal);
      best = time_flows(b.part, annealed.best);
    } else {
      b.lengths[i].bound = best->makespan;
    }
    take(b.lengths[i], std::move(*best));
  }

  int64_t value(const BlockLength& l, bool low) const { return low ? l.bound : l.best; }

  // Shortest ways to and from every border and device.
  BlockPath distances(bool low) const {
    BlockPath p;
    const size_t n = blocks_.size();
    p.before.resize(n + 1);
    p.after.resize(n + 1);
    p.before[0] = {0};
    p.after[n].assign(exits(blocks_[n - 1]), 0);
    for (size_t b = 0; b < n; ++b) {
      p.before[b + 1].assign(exits(blocks_[b]), kNever);
      for (size_t i = 0; i < blocks_[b].lengths.size(); ++i) {
        auto& to = p.before[b + 1][i % exits(blocks_[b])];
        const int64_t sum = p.before[b][i / exits(blocks_[b])] + value(blocks_[b].lengths[i], low);
        to = std::min({to, sum, kNever});
      }
    }
    for (size_t b = n; b-- > 0;) {
      p.after[b].assign(entries(blocks_[b]), kNever);
      for (size_t i = 0; i < blocks_[b].lengths.size(); ++i) {
        auto& from = p.after[b][i / exits(blocks_[b])];
        const int64_t sum = p.after[b + 1][i % exits(blocks_[b])] + value(blocks_[b].lengths[i], low);
        from = std::min({from, sum, kNever});
      }
    }
    p.total = p.after[0][0];
    size_t at = 0;
    for (size_t b = 0; b < n; ++b) {
      size_t chosen = at * exits(blocks_[b]);
      for (size_t j = 0; j < exits(blocks_[b]); ++j) {
        const size_t i = at * exits(blocks_[b]) + j;
        if (value(blocks_[b].lengths[i], low) + p.after[b + 1][j] == p.after[b][at]) {
          chosen = i;
          break;
        }
      }
      p.lengths.push_back(chosen);
      at = chosen % exits(blocks_[b]);
    }
    return p;
  }

  // Of the open lengths on the path, one that was solved least often; among these the least sure one.
  std::optional<std::pair<size_t, size_t>> open_on_path(const BlockPath& path) const {
    std::optional<std::pair<size_t, size_t>> best;
    const BlockLength* chosen = nullptr;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const BlockLength& l = blocks_[b].lengths[path.lengths[b]];
      if (!l.open()) continue;
      if (chosen == nullptr || l.solves < chosen->solves ||
          (l.solves == chosen->solves && l.best - l.bound > chosen->best - chosen->bound)) {
        chosen = &l;
        best = {b, path.lengths[b]};
      }
    }
    return best;
  }

  Status improve(size_t b, size_t i, const BlockPath& low, int64_t best_total) {
    FlowBlock& block = blocks_[b];
    BlockLength& length = block.lengths[i];
    search(block, i);
    FlowCpOptions cp;
    double slice = kFirstSlice;
    for (int s = 0; s < length.solves; ++s) slice *= kSliceGrowth;
    const bool by_work = std::isfinite(work_left_);
    if (by_work) cp.work = std::min(slice, work_left_);
    const double left = options_.deadline.seconds_left();
    cp.deadline = by_work ? options_.deadline : options_.deadline.sooner(std::max(slice, kSliceShare * left));
    cp.seed = options_.seed;
    cp.threads = options_.threads;
    cp.device = fixed(block, i);
    cp.at_least = length.bound;
    if (length.schedule) cp.hint = &*length.schedule;
    // A length from which no path can be better than the best one need not be known exactly.
    const int64_t around = low.before[b][i / exits(block)] + low.after[b + 1][i % exits(block)];
    const int64_t enough = std::min(best_total, start_.makespan) - around;
    cp.wanted = std::min(length.best, std::max(enough, length.bound + 1));
    HEDDLE_ASSIGN_OR_RETURN(auto solved, solve_flows(block.part, cp));
    ++length.solves;
    if (solved.bound > length.bound) length.bound = solved.bound, claimed_by_ = cp_sat_name();
    if (solved.schedule) take(length, std::move(*solved.schedule));
    if (by_work && length.open() && length.bound < *cp.wanted) work_left_ -= cp.work;
    return {};
  }

  std::optional<FlowSchedule> compose(const BlockPath& path) const {
    FlowSchedule s;
    s.device.assign(w_.num_ops(), 0);
    s.op_start.assign(w_.num_ops(), 0);
    s.flow_start.assign(w_.num_flows(), 0);
    int64_t from = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const FlowBlock& block = blocks_[b];
      const BlockLength& length = block.lengths[path.lengths[b]];
      if (!length.schedule) return std::nullopt;
      for (uint32_t v = block.first + (block.entry ? 1 : 0); v <= block.last; ++v) {
        s.device[v] = length.schedule->device[v - block.first];
        s.op_start[v] = from + length.schedule->op_start[v - block.first];
      }
      for (size_t q = 0; q < block.flows.size(); ++q)
        s.flow_start[block.flows[q]] = from + length.schedule->flow_start[q];
      from += length.best;
    }
    return time_flows(w_, decisions_of(w_, s));
  }

  const FlowWorkload& w_;
  const FlowSchedule& start_;
  const FlowBlockOptions& options_;
  double work_left_ = options_.work;
  const size_t k_;
  std::vector<FlowBlock> blocks_;
  std::string claimed_by_;
};

}  // namespace

Result<std::optional<FlowBlockResult>> solve_by_blocks(const FlowWorkload& workload,
                                                       const FlowSchedule& start,
                                                       const FlowBlockOptions& options) {
  return BlockProgram(workload, start, options).run();
}

}  // namespace heddle
