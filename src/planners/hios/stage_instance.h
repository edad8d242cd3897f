// Stage scheduling in flat arrays: ops on devices that run a few independent ops at once (a stage).
//
// A stage S of at most `width` ops on one device takes t(op) for one op and, for more,
//     t(S) = max(longest t, serial * sum t + overlap * max(sum t*u, longest t) + launch_us),
// where u is an op's utilization of the device: HIOS (section IV) takes t(S) as given, its simulation has
// serial = overlap = 0.5. A stage starts when the stage before it on its device is done and every input of
// all its ops is there: the end of the producer's stage, plus the transfer when that is on another device.
// Transfers do not disturb each other. The makespan is minimised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "heddle/cost/stage_model.h"

namespace heddle {

// What an op, a transfer or a schedule takes that cannot be.
inline constexpr double kNoTime = std::numeric_limits<double>::infinity();

// One tensor from op to op. Several between the same two ops are allowed.
struct StageEdge {
  uint32_t from = 0, to = 0;
  double bytes = 0;
};

// Times are at least 0, utilizations at most 1.
struct StageInput {
  size_t ops = 0, devices = 0;
  size_t width = 2;                 // most ops of a stage; 1: no stages
  std::vector<double> us;           // [op * devices + device]; kNoTime: cannot run there
  std::vector<double> utilization;  // alike, 0..1; empty: 1 everywhere
  std::vector<StageModel> sharing;  // per device; empty: HIOS's simulation everywhere
  std::vector<StageEdge> edges;
  // [from * devices + to]: a transfer takes latency_us + bytes * us_per_byte. kNoTime as latency: no way.
  // The diagonal is not read: on one device it takes no time.
  std::vector<double> latency_us, us_per_byte;
};

class StageInstance {
 public:
  struct Neighbour {
    uint32_t op;
    double bytes;
  };

  // The edges must form no cycle. O(ops * devices + edges).
  explicit StageInstance(StageInput input);

  size_t num_ops() const { return n_; }
  size_t num_devices() const { return k_; }
  size_t width() const { return width_; }
  double us(size_t op, size_t device) const { return us_[op * k_ + device]; }
  // us * utilization; kNoTime where the op cannot run.
  double busy_us(size_t op, size_t device) const { return busy_[op * k_ + device]; }
  const StageModel& sharing(size_t device) const { return sharing_[device]; }
  std::span<const Neighbour> inputs(size_t op) const {
    return {in_.data() + in_begin_[op], in_begin_[op + 1] - in_begin_[op]};
  }
  std::span<const Neighbour> outputs(size_t op) const {
    return {out_.data() + out_begin_[op], out_begin_[op + 1] - out_begin_[op]};
  }
  std::span<const uint32_t> topological() const { return topological_; }
  double transfer_us(double bytes, size_t from, size_t to) const {
    const size_t i = from * k_ + to;
    return latency_us_[i] + bytes * us_per_byte_[i];  // both 0 on the diagonal
  }

  // t(S); 0 for no op, kNoTime when one of them cannot run there. The order of the ops does not matter beyond
  // the last bits.
  double stage_us(std::span<const uint32_t> ops, size_t device) const;

 private:
  size_t n_, k_, width_;
  std::vector<double> us_, busy_, latency_us_, us_per_byte_;
  std::vector<StageModel> sharing_;
  std::vector<uint32_t> in_begin_, out_begin_, topological_;
  std::vector<Neighbour> in_, out_;
};

}  // namespace heddle
