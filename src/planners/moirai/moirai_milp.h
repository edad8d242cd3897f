// Moirai's mixed-integer program (section III-D, equations 4 to 8) over the augmented graph.
#pragma once

#include <optional>
#include <vector>

#include "core/flat_problem.h"
#include "heddle/solve/milp.h"

namespace heddle {

struct MoiraiStart {
  FlatPlan plan;
  std::vector<double> op_start_us;           // per op
  std::vector<std::vector<double>> sent_us;  // [tensor][device], when its transfer there starts; any if none
  double makespan_us = 0;
};

class MoiraiMilp {
 public:
  // How many rows the program of this problem has; the constructor is for those that are not too many.
  // O(V^2 + flows^2), counting no further than `most`.
  static size_t count_rows(const FlatProblem& flat, size_t most);
  // All times lie below the start's makespan, which is every big constant. The start must outlive nothing.
  MoiraiMilp(const FlatProblem& flat, const MoiraiStart& start);

  const Milp& model() const { return model_; }
  double us_per_unit() const { return scale_; }
  // Devices by x, order by S (equation 4b).
  FlatPlan decisions(const std::vector<double>& values) const;

 private:
  struct FlowVars {
    uint32_t tensor, from, to;
    Var start, end, crosses;
    std::vector<Var> channel;  // [k' * devices + k''], invalid on the diagonal
  };
  Var x(uint32_t op, size_t k) const { return x_[op * k_ + k]; }
  void add_ops(const MoiraiStart& start);
  void add_memory();
  void add_flows(const MoiraiStart& start);
  void add_flow_rows(const FlowVars& q);
  void add_non_overlap(const MoiraiStart& start);
  void add_congestion(const MoiraiStart& start);

  const FlatProblem& flat_;
  const size_t k_;
  const double scale_;  // us in one unit of the program
  const double big_;    // M, in those units
  Milp model_;
  Var makespan_;
  std::vector<Var> x_, start_, end_;
  std::vector<FlowVars> flows_;
};

}  // namespace heddle
