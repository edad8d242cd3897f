// One linear pass over a plan's steps. Private to the evaluator.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/flat_graph.h"
#include "resource_map.h"
#include "run_moves.h"
#include "run_times.h"

namespace heddle {

struct Evaluator::Impl {
  explicit Impl(const Problem& problem);
  Status run(const Plan& plan, const EvaluateOptions& options, Timeline& out);

 private:
  // When a resource is free again and the step that used it last.
  struct Clock {
    double free_at = 0;
    int32_t step = -1;
  };
  // A segment in four numbers: the pass reads these instead of the plan's segments, each with its own vector.
  struct Brief {
    uint32_t begin = 0, count = 0;  // in ops_
    uint32_t lane = 0;
    DeviceId device;
    int32_t stage = -1;
    bool host_access = false;
  };
  // A tensor in one lane, once made.
  struct Made {
    double finish = 0;
    int32_t step = -1, device = -1, segment = -1;
    int32_t transfers = -1;  // its transfer steps, linked by next_transfer_
  };
  struct Ready {
    double at = 0;
    int32_t step = -1;
    void wait_for(double t, int32_t s) {
      if (t > at) {
        at = t;
        step = s;
      }
    }
  };

  Status start(const Plan& plan);
  bool start_segment(size_t s);
  bool run_step(size_t i);
  int32_t stage_of_step(size_t i) const;
  size_t stage_end(size_t i) const;
  bool run_stage_at(size_t& i);
  bool run_stage(size_t i, size_t end);
  bool begin_run(size_t i);
  bool wait_for_run(size_t i, const Brief& segment, Ready& ready);
  void wait_for_device(const Brief& segment, Ready& ready);
  void hold_host_access(size_t i, const Brief& segment, double finish);
  void end_run(size_t i, const Brief& segment, const Ready& ready, double finish);
  bool fail_time(size_t i, const Brief& segment);
  double run_us(size_t i, const Brief& segment);
  bool is_unlimited(DeviceId device) const {
    return problem_.execution.unlimited_cpus && cluster_.device(device).kind == DeviceKind::kCpu;
  }
  bool transfer_step(size_t i);
  bool load_step(size_t i);
  void place_residents();
  bool wait_for_inputs(size_t i, const Brief& segment, Ready& ready);
  bool wait_for_params(size_t i, const Brief& segment, Ready& ready);
  // Does the tensor come from the one device to the other without a step?
  bool comes_free(uint32_t tensor, DeviceId from, DeviceId to) const {
    if (has_given_times_ && problem_.is_order_only(TensorId(size_t{tensor}))) return true;
    return map_.way(from, to).passage == Passage::kFree;
  }
  int32_t find_transfer(const Made& made, DeviceId to) const;
  // The step's own way if it brings one, else the cluster's; nullopt after fail().
  std::optional<Way> way_of(size_t i, const Way& cluster_way, NodeId from, DeviceId from_device);
  void occupy(size_t i, size_t lane, const Way& way, double us, Ready ready);
  std::span<const OpId> ops_of(const Brief& b) const { return {ops_.data() + b.begin, b.count}; }
  const std::string& name_of(size_t step) const;
  bool fail(size_t step, std::string why);
  bool fail_input(size_t step, size_t tensor, int32_t segment);
  void finish(const EvaluateOptions& options);
  void report_resources();
  void note_period(double load) { out_->period_us = std::max(out_->period_us, load); }

  Clock& clock(size_t lane, size_t resource) { return clocks_[lane * map_.size() + resource]; }
  Made& made(size_t lane, size_t tensor) { return made_[lane * num_tensors_ + tensor]; }
  int32_t& op_segment(size_t lane, size_t op) { return op_segment_[lane * num_ops_ + op]; }

  const Problem problem_;
  const Cluster& cluster_;
  const size_t num_ops_, num_tensors_, num_devices_;
  const FlatGraph flat_;
  const RunTimes times_;
  const ResourceMap map_;
  const std::vector<CoreGroup> cores_;
  const std::vector<uint8_t> closed_nodes_;  // Problem::closed_nodes()
  const bool cold_;
  const bool has_given_times_;  // Transfers::kGiven
  RunMoves moves_;

  const Plan* plan_ = nullptr;
  Timeline* out_ = nullptr;
  bool waited_ = true;
  Status status_;
  std::vector<Brief> briefs_;           // per segment
  std::vector<OpId> ops_;               // of all segments
  std::vector<Clock> clocks_;           // lane x resource
  std::vector<Made> made_;              // lane x tensor
  std::vector<int32_t> op_segment_;     // lane x op
  std::vector<int32_t> next_transfer_;  // per step
  std::vector<int32_t> run_step_;       // per segment
  std::vector<uint8_t> stage_ran_;      // per stage; empty when the plan has none
  std::vector<StageItem> items_;        // of the stage that is timed
  // Pool x param: the load step that brings it, kResident or kAbsent (cold).
  static constexpr int32_t kAbsent = -1, kResident = -2;
  std::vector<int32_t> param_load_;
  std::vector<double> busy_, load_busy_;  // per resource and request: all of it, and loads alone
  // Ways that the plan brings itself; deque-like stability through unique_ptr.
  struct OwnWay {
    Route route;
    std::vector<uint32_t> resources;
  };
  std::vector<std::unique_ptr<OwnWay>> own_ways_;
};

// The most bytes that live in each memory pool at once (docs/execution-model.md). O(n log n).
std::vector<int64_t> peak_memory(const Problem& problem, const Plan& plan, const Timeline& timeline);

}  // namespace heddle
