// A plan for a fleet: a set of pooled pipelines for each model (PPipe, ATC'25, section 3). A pipeline is a chain of
// partitions on pools of virtual devices.
//
// With b the batch, v the share, q the devices per server, tr[c] = cut_bytes[c] / nic_bytes_per_s in us:
//   infer_k  = sum of the blocks' times at (class, v, b)
//   trans_k  = b * tr over the slower NIC of both ends; 0 after the last partition
//   X_k      = min(b / infer_k, NIC in / (v q), NIC out / (v q))   requests/s of one virtual device;
//              the model's input and output are never charged
//   rate     = min over k of count_k * X_k
//   latency  = sum of infer_k + trans_k, + batch_delay_factor * (b - 1) / estimated rate, + margin <= SLO
// Whole devices: for each (model, partition position, class), the sum of count / v over the pipelines,
// rounded up. Models and positions never share a whole device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/proof.h"
#include "heddle/fleet/fleet.h"

namespace heddle {

struct FleetPartition {
  int block_from = 0, block_to = 0;  // blocks [from, to)
  int device_class = 0;              // index into the fleet's classes
  int share = 1;                     // v: each virtual device is 1/v of a device
  int64_t count = 0;                 // virtual devices in the pool
};

struct FleetPipeline {
  std::vector<FleetPartition> partitions;  // in order; they cover all blocks
  int batch = 1;                           // batch size of every partition
  double rate_per_s = 0;                   // the rate that the pools sustain
};

struct ModelPlan {
  std::vector<FleetPipeline> pipelines;
  double rate_per_s = 0;  // the sum over its pipelines
  // The part of the SLO that this plan leaves free, in place of the fleet's (heddle/fleet/goodput_plan.h).
  std::optional<double> margin_us;
};

enum class FleetObjective {
  kMaxMin,   // maximise the smallest rate / weight over the models; weights as given
  kCost,     // minimise the cost per hour of the used devices at the given load
  kPower,    // minimise the watts of the used devices at the given load
  kGoodput,  // maximise the sum over models of min(rate, load)
};
const char* fleet_objective_name(FleetObjective objective);  // "max-min", "cost", "power", "goodput"
std::optional<FleetObjective> fleet_objective_named(std::string_view name);
// True for kMaxMin and kGoodput.
bool more_is_better(FleetObjective objective);

struct FleetPlan {
  std::string fleet;  // the fleet's name
  std::string planner;
  FleetObjective objective = FleetObjective::kMaxMin;
  double load_per_s = 0;          // of all models, split by weight; 0 if the objective needs none
  std::vector<ModelPlan> models;  // in the fleet's order
  double value = 0;               // objective value: 1/s, cost per hour or watts
  double bound = 0;               // no plan is better
  Proof proof;                    // of the bound
  double planning_s = 0;

  // relative_gap() of costs, for rates of their inverses: (bound - value) / value.
  double gap() const;
};

// The plan's margin for the model, the fleet's if it states none.
double margin_us(const Fleet& fleet, const FleetPlan& plan, size_t model);
// The fleet with the plan's margins as its own: for planning anew what the plan is compared with.
Fleet with_margins_of(const Fleet& fleet, const FleetPlan& plan);
// A model's share of the plan's load.
double model_load(const Fleet& fleet, const FleetPlan& plan, size_t model);
// Whole devices used, [class], by the rule at the top of this file.
std::vector<int64_t> devices_used(const Fleet& fleet, const FleetPlan& plan);

// The only evaluator of fleet plans: computes rates and value from the pools and the fleet's times.
void evaluate_fleet_plan(const Fleet& fleet, FleetPlan& plan);

// Plan files refer to classes and models by name, so reading and writing need the fleet. The input is
// untrusted: unknown names (with the nearest), blocks out of range and the like are errors that name the
// place. Validity of the plan is checked by check_fleet_plan(), not here.
Result<FleetPlan> fleet_plan_from_json(const Json& json, const Fleet& fleet);
Json to_json(const FleetPlan& plan, const Fleet& fleet);
// File formats as in read_fleet() and write_fleet().
Result<FleetPlan> read_fleet_plan(const std::string& path, const Fleet& fleet);
Status write_fleet_plan(const std::string& path, const FleetPlan& plan, const Fleet& fleet);

}  // namespace heddle
