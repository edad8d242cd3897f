// ppipe-milp: the MILP of PPipe, ATC'25, appendix A.2 (batch size unification, virtual devices), equation by
// equation. Choices where the appendix is open or contradicts the planner published with it:
//   - A pipeline may stay unused: the sum of (16) is a binary. With "= 1", (22) would force a device into
//     each pipeline.
//   - X_ldvbij is also limited by the virtual device's part of its server's NIC, in and out.
//   - T is the SLO minus the margin, and (27) includes the time in which a batch fills.
//   - (23) counts whole devices of each (model, partition, class), as two of these cannot share a device.
// Each sequence of classes has one configuration, as in the paper; ppipe-dp and ppipe-columns do not have
// this limit.
#include "ppipe_milp.h"

#include <cmath>
#include <map>

#include "column_model.h"

namespace heddle {
namespace {

// "A2_eq21_", to be followed by pipeline, partition and so on. It does not begin with "e", which readers of
// LP files reject.
std::string row_name(int equation) { return "A2_eq" + std::to_string(equation) + "_"; }

}  // namespace

PpipeMilp::PpipeMilp(const FleetTask& task) : task_(task) {
  std::vector<int> present;
  for (size_t k = 0; k < task.fleet.classes.size(); ++k)
    if (task.fleet.classes[k].count > 0) present.push_back(static_cast<int>(k));
  // Section 3: a model's pipelines are all sequences of 1 to D classes.
  for (size_t m = 0; m < task.fleet.models.size(); ++m) {
    std::vector<std::vector<int>> sequences = {{}};
    for (size_t begin = 0, length = 1; length <= static_cast<size_t>(task.fleet.max_partitions); ++length) {
      const size_t end = sequences.size();
      for (size_t s = begin; s < end; ++s)
        for (const int k : present) {
          auto longer = sequences[s];
          longer.push_back(k);
          sequences.push_back(std::move(longer));
        }
      begin = end;
    }
    for (size_t s = 1; s < sequences.size(); ++s) add_pipeline(m, sequences[s]);
  }
  add_counts();
  add_objective();
}

void PpipeMilp::add_pipeline(size_t model, const std::vector<int>& classes) {
  Pipeline pipeline;
  pipeline.model = model;
  pipeline.classes = classes;
  pipeline.d.resize(classes.size());
  pipeline.x = milp_.add_continuous(0, kNoBound, "x_" + std::to_string(pipelines_.size()));
  for (size_t d = 0; d < classes.size(); ++d) add_choices(pipeline, d);
  add_rows(pipeline);
  pipelines_.push_back(std::move(pipeline));
}

void PpipeMilp::add_choices(Pipeline& pipeline, size_t d) {
  const auto& model = task_.fleet.models[pipeline.model];
  const auto k = static_cast<size_t>(pipeline.classes[d]);
  const auto& dc = task_.fleet.classes[k];
  const int M = model.blocks;
  const bool first = d == 0, last = d + 1 == pipeline.classes.size();
  for (int v = 1; v <= dc.share_levels; ++v)
    for (int b = 1; b <= model.max_batch(k, v); ++b)
      // (17) i < j; (19) the first partition begins with block 0; (20) the last one ends with block M - 1.
      for (int i = first ? 0 : 1; i < (first ? 1 : M); ++i) {
        double C_us = 0, bytes = 0;
        for (int j = i + 1; j <= M; ++j) {
          C_us += model.block_us(k, v, b, j - 1);
          if (!model.parameter_bytes.empty())
            bytes += static_cast<double>(model.parameter_bytes[static_cast<size_t>(j - 1)]);
          if (last != (j == M)) continue;
          if (dc.memory_bytes > 0 && bytes * v > static_cast<double>(dc.memory_bytes)) break;
          Choice c{{}, {}, v, b, i, j, C_us, virtual_device_rate(model, nic_share(dc, v), b, i, j, C_us)};
          const auto name = std::to_string(pipelines_.size()) + "_" + std::to_string(d) + "_" +
                            std::to_string(v) + "_" + std::to_string(b) + "_" + std::to_string(i) + "_" +
                            std::to_string(j);
          c.p = milp_.add_binary("p_" + name);
          const auto most = static_cast<double>(dc.count * v);
          c.g = milp_.add_integer(0, most, "g_" + name);
          milp_.at_most({{c.g, 1}, {c.p, -most}}, 0, row_name(21) + name);  // (21) p = 0 -> g = 0
          milp_.at_least({{c.g, 1}, {c.p, -1}}, 0, row_name(22) + name);    // (22) p = 1 -> g >= 1
          pipeline.d[d].push_back(c);
        }
      }
}

void PpipeMilp::add_rows(const Pipeline& pipeline) {
  const auto& fleet = task_.fleet;
  const auto& model = fleet.models[pipeline.model];
  const auto l = std::to_string(pipelines_.size());
  const auto used = milp_.add_binary("used_" + l);
  std::vector<Term> latency;
  for (size_t d = 0; d < pipeline.d.size(); ++d) {
    const auto at = l + "_" + std::to_string(d);
    std::vector<Term> chosen = {{used, -1}}, throughput = {{pipeline.x, 1}};
    std::map<std::pair<int, int>, std::vector<Term>> joins;  // [(b, cut)]: ends there minus begins there
    for (const auto& c : pipeline.d[d]) {
      chosen.push_back({c.p, 1});
      throughput.push_back({c.g, -c.X});
      // (24), (26), and the time in which the batch fills
      double us = c.C_us;
      if (d == 0) us += batch_delay_us(fleet, pipeline.model, c.b);
      if (c.j < model.blocks) {
        us += transfer_us(fleet, model, c.b, c.j, pipeline.classes[d], pipeline.classes[d + 1]);
        joins[{c.b, c.j}].push_back({c.p, 1});
      }
      latency.push_back({c.p, us});
    }
    if (d + 1 < pipeline.d.size())
      for (const auto& c : pipeline.d[d + 1]) joins[{c.b, c.i}].push_back({c.p, -1});
    milp_.equal(std::move(chosen), 0, row_name(16) + at);        // (16)
    milp_.at_most(std::move(throughput), 0, row_name(28) + at);  // (25) and (28)
    for (auto& [key, terms] : joins)                             // (18): same batch size, adjacent blocks
      milp_.equal(std::move(terms), 0,
                  row_name(18) + at + "_" + std::to_string(key.first) + "_" + std::to_string(key.second));
  }
  milp_.at_most(std::move(latency), model.slo_us - model.margin_us, row_name(27) + l);  // (27)
}

void PpipeMilp::add_counts() {
  const auto& fleet = task_.fleet;
  std::map<std::tuple<size_t, size_t, int>, std::vector<Term>> bins;
  for (const auto& pipeline : pipelines_)
    for (size_t d = 0; d < pipeline.d.size(); ++d)
      for (const auto& c : pipeline.d[d])
        bins[{pipeline.model, d, pipeline.classes[d]}].push_back({c.g, 1.0 / c.v});
  std::vector<std::vector<Term>> supply(fleet.classes.size());
  for (auto& [key, terms] : bins) {
    const auto k = static_cast<size_t>(std::get<2>(key));
    const auto n = milp_.add_integer(0, static_cast<double>(fleet.classes[k].count),
                                     "n_" + std::to_string(std::get<0>(key)) + "_" +
                                         std::to_string(std::get<1>(key)) + "_" + std::to_string(k));
    terms.push_back({n, -1});
    milp_.at_most(std::move(terms), 0,
                  row_name(23) + "whole_" + std::to_string(std::get<0>(key)) + "_" +
                      std::to_string(std::get<1>(key)) + "_" + std::to_string(k));  // (23), rounded up
    supply[k].push_back({n, 1});
  }
  for (size_t k = 0; k < supply.size(); ++k) {
    if (supply[k].empty()) continue;
    const double cost = device_cost(fleet.classes[k], task_.goal.objective);
    if (cost > 0)
      for (const auto& t : supply[k]) milp_.add_cost(t.var, cost);
    milp_.at_most(supply[k], static_cast<double>(fleet.classes[k].count),
                  row_name(23) + std::to_string(k));  // (23)
  }
}

void PpipeMilp::add_objective() {
  const auto objective = task_.goal.objective;
  Var z;
  if (objective == FleetObjective::kMaxMin) {
    z = milp_.add_continuous(0, kNoBound, "z");
    milp_.add_cost(z, -1);
  }
  for (size_t m = 0; m < task_.fleet.models.size(); ++m) {
    // (15) for one model; section 3 for several: maximise the lowest normalised throughput.
    std::vector<Term> rate;
    for (const auto& pipeline : pipelines_)
      if (pipeline.model == m) rate.push_back({pipeline.x, 1});
    const double load = task_.goal.load[m];
    add_demand(milp_, objective, std::move(rate), load, {z, -load}, row_name(15) + std::to_string(m),
               "good_" + std::to_string(m));
  }
}

std::vector<ModelPlan> PpipeMilp::plan(const std::vector<double>& values) const {
  std::vector<ModelPlan> models(task_.fleet.models.size());
  for (const auto& from : pipelines_) {
    FleetPipeline pipeline;
    for (size_t d = 0; d < from.d.size(); ++d)
      for (const auto& c : from.d[d]) {
        const auto count = std::llround(values[static_cast<size_t>(c.g.index)]);
        if (count < 1) continue;
        pipeline.batch = c.b;
        pipeline.partitions.push_back({c.i, c.j, from.classes[d], c.v, count});
      }
    if (!pipeline.partitions.empty()) models[from.model].pipelines.push_back(std::move(pipeline));
  }
  for (auto& m : models) merge_pipelines(m.pipelines);
  return models;
}

Result<FleetAnswer> plan_milp(const FleetTask& task) {
  const PpipeMilp model(task);
  auto options = solve_options(task.options, 1e-4);  // the gap of the published planner's solver settings
  if (task.options.progress)
    options.on_progress = [&](const SolveProgress& p) {
      task.options.progress->report(
          {"ppipe-milp" +
               (std::isfinite(p.incumbent) ? ", best " + std::to_string(std::abs(p.incumbent)) : ""),
           0,
           0,
           {},
           {}});
    };
  HEDDLE_ASSIGN_OR_RETURN(const auto solved, solve(model.milp(), options));
  if (solved.status == SolveStatus::kInfeasible) return no_plan_serves(task);
  if (!solved.has_values())
    return cancelled_error("ppipe-milp found no plan in its time; give it more, or use auto");
  FleetAnswer answer;
  answer.models = model.plan(solved.values);
  return answer;
}

}  // namespace heddle
