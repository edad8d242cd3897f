// A schedule of stages under change: ops are taken out and put back, and every way of putting one back is
// timed exactly without trying it.
//
// Each stage has a head (start: the longest path to it) and a tail (the longest path from its end to the end
// of the schedule), over the graph's edges and the order on devices. With op v taken out, putting it back
// between two stages, or into one, only adds paths through v's stage; so the new makespan is
//     max(makespan of the rest, head + duration + tail of that stage),
// head and tail read off the neighbours: exact, in O(1) a slot once v's inputs and outputs are looked at.
// This is how E. Taillard (European Journal of Operational Research 47, 1990) and M. Mastrolilli and L. M.
// Gambardella (Journal of Scheduling 3, 2000) time moves of job shops; here the neighbours' duration changes
// too when v joins them. Heads and tails follow a change along a maintained topological order, and only
// where a value differs. On Inception-v3 and two devices an op is taken out and put back with 23,000
// instructions, all of its places on a device are timed with 1,500; the evaluator takes 182,000 for the
// schedule.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stage_instance.h"
#include "stage_schedule.h"

namespace heddle {

class StageState {
 public:
  // Where an op may be put: before the stage at `index` of the device (or last), or into that stage.
  struct Insertion {
    uint32_t device = 0, index = 0;
    bool join = false;
    double length_us = kNoTime;  // the longest path through the op there
    double end_us = kNoTime;     // when its stage ends there
  };

  // Empty: no op is placed. The instance must outlive this object.
  explicit StageState(const StageInstance& instance);
  // Per op, what is thought to follow its end at the least while its outputs are not placed; counts in tails
  // and lengths. To be called while no op is placed; load() forgets it.
  void expect_tails(std::vector<double> us) { expected_ = std::move(us); }
  // A schedule that time_stages() accepts.
  void load(const StageSchedule& schedule);
  StageSchedule schedule() const;

  // Of the placed ops.
  double makespan_us() const { return now_.makespan; }
  bool placed(uint32_t op) const { return now_.stage_of[op] != kNone; }
  uint32_t device(uint32_t op) const { return now_.device[now_.stage_of[op]]; }
  double start_us(uint32_t op) const { return now_.start[now_.stage_of[op]]; }
  double end_us(uint32_t op) const { return now_.end[now_.stage_of[op]]; }
  // The longest path through the op's stage.
  double length_us(uint32_t op) const {
    return now_.start[now_.stage_of[op]] + now_.from_start[now_.stage_of[op]];
  }
  uint32_t stage_size(uint32_t op) const { return now_.count[now_.stage_of[op]]; }
  // Stages of a device and their ops, in order.
  size_t num_stages(size_t device) const { return now_.sequence[device].size(); }
  std::span<const uint32_t> stage_at(size_t device, size_t index) const {
    const uint32_t s = now_.sequence[device][index];
    return {now_.ops.data() + s * width_, now_.count[s]};
  }

  // Takes a placed op out.
  void remove(uint32_t op);
  // The slots of an op that is out, on one device or on all (only == kAny), that cannot deadlock: those
  // where heads and tails show that no placed output leads to the stage before and no placed input is led to
  // from the stage behind. Slots whose length is above `most` are left out. Appends to `slots`; returns how
  // many slots were timed.
  size_t slots(uint32_t op, uint32_t only, double most, std::vector<Insertion>& slots);
  static constexpr uint32_t kAny = UINT32_MAX;
  // Puts an op that is out there. False when stages would wait for each other (only possible while other ops
  // are out, or for slots of the caller's own making): then undo() or load() must follow.
  bool insert(uint32_t op, const Insertion& slot);

  // Back to the state at the last keep() or load(); the present one becomes that state. All ops must be
  // placed at keep().
  void undo() { now_ = kept_; }
  void keep() { kept_ = now_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Block {
    std::vector<uint32_t> stage_of;                    // per op
    std::vector<uint32_t> ops, count, device, index;   // per stage number; its place on the device
    std::vector<uint32_t> order, position;             // all stage numbers, topological; empty ones anywhere
    std::vector<double> start, end, tail, from_start;  // from_start = duration + tail
    std::vector<double> duration, sum, busy, longest;
    std::vector<uint32_t> free;                   // empty stage numbers
    std::vector<std::vector<uint32_t>> sequence;  // per device
    double makespan = 0;
  };

  void clear();
  double joined_us(uint32_t stage, uint32_t op) const;
  void renew_duration(uint32_t stage);
  void renumber(uint32_t device, size_t from);
  bool settle(uint32_t stage);
  void mark_forward(uint32_t stage);
  void mark_backward(uint32_t stage);
  void propagate_heads();
  void propagate_tails();
  void propagate();
  template <class Visit>
  void each_before(uint32_t stage, Visit visit) const;
  template <class Visit>
  void each_behind(uint32_t stage, Visit visit) const;

  const StageInstance& instance_;
  const size_t n_, k_, width_;
  Block now_, kept_;
  std::vector<uint64_t> forward_, backward_;  // positions to look at, a bit each
  std::vector<uint8_t> behind_;               // per stage, in settle()
  std::vector<uint32_t> moved_;
  std::vector<double> expected_;
  std::vector<double> arrival_, leave_;  // per device, in slots()
  std::vector<uint32_t> first_, last_;
};

}  // namespace heddle
