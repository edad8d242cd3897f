// The area bound: the value of any point of the dual of the assignment LP. docs/bounds.md, sections 3 to 6.
// Private to bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "bound_tables.h"
#include "heddle/base/cancel.h"

namespace heddle {

class AreaBound {
 public:
  explicit AreaBound(const BoundTables& tables);

  // Improves the multipliers for the ops of `subset` in at most `rounds` rounds. Returns the best bound found
  // on the time that the work of these ops takes, and keeps its multipliers.
  double improve(const std::vector<uint32_t>& subset, int rounds, const Deadline& deadline);
  // The op's least weighted work under the current multipliers (whose time part sums to 1).
  double score(size_t op) const { return cheapest(op).score; }
  // The total weight of compute resources, and the amount that the memory terms subtract.
  double compute_weight() const;
  double memory_discount() const;
  bool has_loads() const { return num_load_ > 0; }
  size_t work_per_round(size_t ops) const { return ops * k_; }

 private:
  struct MemoryPool {
    double bytes;
    std::vector<uint32_t> devices;
  };
  // The cheapest device of an op under the current multipliers, and whether it uses direct host access.
  struct Choice {
    double score;
    size_t device = 0;
    bool host_access = false;
  };
  Choice cheapest(size_t op) const;
  void find_compute_resources();
  void find_pools();
  void spread_weights();
  double evaluate(const std::vector<uint32_t>& subset);
  void resource_loads();

  const BoundTables& b_;
  const size_t k_;
  std::vector<std::vector<uint32_t>>
      compute_;  // sets of devices of which one runs at a time: a clique, or the devices of a core
  std::vector<std::vector<uint32_t>> load_users_;  // per load resource: devices
  size_t num_load_ = 0;
  std::vector<MemoryPool> pools_;  // only pools smaller than the sum of all parameters
  std::vector<double> y_;          // compute, then load resources (sum 1), then pools
  double scale_ = 0;               // T^ of docs/bounds.md, section 5: scales bytes to time
  // Per device, the weight of its time, of a byte loaded, of a byte kept, and of time with direct host access
  // (which holds links too).
  std::vector<double> per_us_, per_load_byte_, per_byte_, per_host_us_;
  // Of the current cheapest assignment, per device: time, bytes loaded, bytes kept, and the part of the time
  // that is direct host access.
  std::vector<double> device_us_, device_load_bytes_, device_bytes_, device_host_us_;
  std::vector<double> loads_;  // per resource
};

}  // namespace heddle
