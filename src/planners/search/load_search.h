// Simulated annealing over the devices of a lane's ops for the least largest load.
#pragma once

#include <optional>

#include "device_search.h"
#include "load_model.h"

namespace heddle {

// Temperatures are shares of the best value. The order of the start is kept as it is.
class LoadSearch final : public DeviceSearch {
 public:
  LoadSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed);

  bool run(const SearchRound& round, const Deadline& deadline) override;

  // For anneal().
  void look(double share, double temperature);
  bool propose();
  double rise(Metropolis& rule);
  void keep();
  void undo() { restore_devices(); }

 private:
  bool may_run(uint32_t op, uint32_t device) const override { return model_.possible(op, device); }
  void moved(uint32_t op) override { model_.put(op, static_cast<int32_t>(now_.device[op])); }
  bool change_some();
  uint32_t pick_op();
  uint32_t pick_device(uint32_t op);
  void load();

  LoadModel model_;
  double now_norm_ = 0, next_norm_ = 0, unit_us_ = 1;
  uint64_t looks_ = 0;
};

// Ops one by one in topological order, each where the largest load grows least. nullopt when an op fits
// nowhere.
std::optional<FlatPlan> least_load_plan(const FlatProblem& flat, const Reserve& reserve,
                                        const Deadline& deadline);

}  // namespace heddle
