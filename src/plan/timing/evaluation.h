// One linear pass over a plan's steps. Private to the evaluator.
#pragma once

#include <optional>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/flat_graph.h"
#include "heddle/plan/resource_map.h"
#include "run_moves.h"
#include "run_times.h"

namespace heddle {

struct Evaluator::Impl {
  explicit Impl(const Problem& problem);
  Status run(const Plan& plan, const EvaluateOptions& options, Timeline& out);

 private:
  // When a resource becomes free, and the step that used it last.
  struct ResourceClock {
    double free_at = 0;
    int32_t step = -1;
  };
  // A segment's data in flat form: the pass reads this instead of Plan::segments, whose entries own vectors.
  struct SegmentData {
    uint32_t begin = 0, count = 0;  // in ops_
    uint32_t lane = 0;
    DeviceId device;
    int32_t stage = -1;
    bool host_access = false;
  };
  // A tensor of one lane, once it is computed.
  struct ProducedTensor {
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
  bool wait_for_run(size_t i, const SegmentData& segment, Ready& ready);
  void wait_for_device(const SegmentData& segment, Ready& ready);
  void hold_host_access(size_t i, const SegmentData& segment, double finish);
  void end_run(size_t i, const SegmentData& segment, const Ready& ready, double finish);
  bool fail_time(size_t i, const SegmentData& segment);
  double run_us(size_t i, const SegmentData& segment);
  bool is_unlimited(DeviceId device) const {
    return problem_.execution.unlimited_cpus && cluster_.device(device).kind == DeviceKind::kCpu;
  }
  bool transfer_step(size_t i);
  bool load_step(size_t i);
  void place_residents();
  bool wait_for_inputs(size_t i, const SegmentData& segment, Ready& ready);
  bool wait_for_params(size_t i, const SegmentData& segment, Ready& ready);
  // Does the tensor come from the one device to the other without a step?
  bool comes_free(uint32_t tensor, DeviceId from, DeviceId to) const {
    if (has_given_times_ && problem_.is_order_only(TensorId(size_t{tensor}))) return true;
    return map_.transfer(from, to).passage == Passage::kFree;
  }
  int32_t find_transfer(const ProducedTensor& tensor, DeviceId to) const;
  // The step's own route if it has one, else the cluster's; nullopt after fail().
  std::optional<RoutedTransfer> route_of(size_t i, const RoutedTransfer& cluster_route, DeviceId from);
  void occupy(size_t i, size_t lane, const RoutedTransfer& transfer, double us, Ready ready);
  std::span<const OpId> ops_of(const SegmentData& segment) const {
    return {ops_.data() + segment.begin, segment.count};
  }
  const std::string& name_of(size_t step) const;
  bool fail(size_t step, std::string why);
  bool fail_input(size_t step, size_t tensor, int32_t segment);
  void finish(const EvaluateOptions& options);
  double load_of(const CoreGroup& group) const;
  void report_resources();
  void note_period(double load) { out_->period_us = std::max(out_->period_us, load); }

  ResourceClock& clock(size_t lane, size_t resource) { return clocks_[lane * map_.size() + resource]; }
  ProducedTensor& produced(size_t lane, size_t tensor) { return produced_[lane * num_tensors_ + tensor]; }
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
  std::vector<SegmentData> segments_;     // per segment
  std::vector<OpId> ops_;                 // of all segments
  std::vector<ResourceClock> clocks_;     // lane x resource
  std::vector<ProducedTensor> produced_;  // lane x tensor
  std::vector<int32_t> op_segment_;       // lane x op
  std::vector<int32_t> next_transfer_;    // per step
  std::vector<int32_t> run_step_;         // per segment
  std::vector<uint8_t> stage_ran_;        // per stage; empty when the plan has none
  std::vector<StageItem> items_;          // of the stage being timed
  // Pool x param: the load step that brings it, kResident or kAbsent (cold).
  static constexpr int32_t kAbsent = -1, kResident = -2;
  std::vector<int32_t> param_load_;
  std::vector<double> busy_, load_busy_;              // per resource, per request: total, and loads only
  std::vector<std::vector<uint32_t>> own_resources_;  // of the routes that the plan brings
};

// Peak memory of each pool (docs/execution-model.md). O(n log n).
std::vector<int64_t> peak_memory(const Problem& problem, const Plan& plan, const Timeline& timeline);

}  // namespace heddle
