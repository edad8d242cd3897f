// Simulated annealing over the devices of a lane's ops for the least largest load.
#pragma once

#include <vector>

#include "anneal.h"
#include "load_model.h"

namespace heddle {

class LoadSearch : public AnnealSearch {
 public:
  LoadSearch(const FlatProblem& flat, std::vector<uint32_t> devices, const Reserve& reserve, uint64_t seed);

  // One round from the best so far, temperatures as shares of its value; false when the deadline stopped it.
  bool run(const SearchRound& round, const Deadline& deadline);

  const std::vector<uint32_t>& best() const { return best_; }
  double best_us() const { return best_us_; }
  int64_t best_excess() const { return best_excess_; }
  uint64_t moves_tried() const { return tried_; }

  // For anneal().
  bool done() const { return best_excess_ == 0 && best_us_ <= stop_at_us_; }
  void look(double share, double temperature);
  bool propose();
  double rise(Metropolis& rule);
  void keep();
  void undo();

 private:
  bool change_some();
  bool change(uint32_t op, uint32_t device);
  bool change_group(uint32_t op, uint32_t device);
  uint32_t pick_op();
  uint32_t pick_device(uint32_t op);
  void load(const std::vector<uint32_t>& devices);
  void take_if_best(int64_t excess);

  const FlatProblem& flat_;
  LoadModel model_;
  ParamUse params_;
  Random random_;
  std::vector<uint32_t> best_;
  double best_us_ = kImpossible;
  int64_t best_excess_ = 0, now_excess_ = 0;
  double now_norm_ = 0, next_norm_ = 0;
  int64_t next_excess_ = 0;
  double unit_us_ = 1, stop_at_us_ = 0;
  uint64_t looks_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> moved_;  // op, its old device
  std::vector<uint32_t> group_, mark_;
  uint32_t stamp_ = 0;
  uint64_t tried_ = 0;
};

// Ops one by one in topological order, each where the largest load grows least. nullopt when an op fits
// nowhere.
std::optional<std::vector<uint32_t>> least_load_devices(const FlatProblem& flat, const Reserve& reserve,
                                                        const Deadline& deadline);

}  // namespace heddle
