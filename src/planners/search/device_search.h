// What searches over the devices of one lane's ops share: moves of an op or of connected ops, parameter memory
// as the first objective, and the best plan so far.
#pragma once

#include <vector>

#include "anneal.h"
#include "core/param_use.h"

namespace heddle {

class DeviceSearch : public AnnealSearch {
 public:
  virtual ~DeviceSearch() = default;

  // One round from the best plan so far. False when the deadline stopped it.
  virtual bool run(const SearchRound& round, const Deadline& deadline) = 0;

  const FlatPlan& best() const { return best_; }
  double best_us() const { return best_us_; }
  // Bytes of parameters beyond the limits in best(): 0 unless nothing that fits has been found.
  int64_t best_excess() const { return best_excess_; }
  uint64_t moves_tried() const { return tried_; }

  // For anneal().
  bool done() const { return best_excess_ == 0 && best_us_ <= stop_at_us_; }

 protected:
  DeviceSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed);

  virtual bool may_run(uint32_t op, uint32_t device) const = 0;
  // now_.device[op] has changed.
  virtual void moved(uint32_t op) = 0;

  // now_ becomes the best plan. Does not call moved().
  void load_best();
  bool change_device(uint32_t op, uint32_t device);
  // The op and ops around it on the same device, connected by data.
  bool change_group(uint32_t op, uint32_t device);
  // Takes the device changes of the move back.
  void restore_devices();
  // now_, which has been accepted and takes so long.
  void take_if_best(double us);
  bool finish_round(const Annealed& annealed);

  const FlatProblem& flat_;
  Random random_;
  ParamUse params_;
  FlatPlan now_, best_;
  double best_us_ = kImpossible, stop_at_us_ = 0;
  // Too many bytes are worse than any time; fewer are worth any time.
  int64_t now_excess_ = 0, next_excess_ = 0, best_excess_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> moved_;  // by the move being tried: op, its old device
  std::vector<uint32_t> mark_;                        // per op: equal to stamp_ where it was seen
  uint32_t stamp_ = 0;

 private:
  std::vector<uint32_t> group_;
  uint64_t tried_ = 0;
};

}  // namespace heddle
