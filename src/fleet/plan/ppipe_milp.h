#pragma once

#include <vector>

#include "heddle/solve/milp.h"
#include "planner_parts.h"

namespace heddle {

// The MILP of PPipe's appendix A.2, one block of variables and rows for each model.
class PpipeMilp {
 public:
  explicit PpipeMilp(const FleetTask& task);
  const Milp& milp() const { return milp_; }
  // The pools of a solution.
  std::vector<ModelPlan> plan(const std::vector<double>& values) const;

 private:
  struct Choice {  // the variables p and g of one (l, d, v, b, i, j)
    Var p, g;
    int v = 1, b = 1, i = 0, j = 0;
    double C_us = 0, X = 0;
  };
  struct Pipeline {  // pipeline l of a model: its classes, and the choices of each partition d
    size_t model = 0;
    std::vector<int> classes;
    std::vector<std::vector<Choice>> d;
    Var x;
  };
  void add_pipeline(size_t model, const std::vector<int>& classes);
  void add_choices(Pipeline& pipeline, size_t d);
  void add_rows(const Pipeline& pipeline);
  void add_counts();
  void add_objective();

  const FleetTask& task_;
  Milp milp_;
  std::vector<Pipeline> pipelines_;
};

}  // namespace heddle
