#include "rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/planners/trajectory.h"
#include "heddle/report/text_table.h"

namespace heddle::bench {
namespace {

std::string cell(double v) { return fmt::format("{:.4g}", v); }
std::string number7(double v) { return fmt::format("{:.7g}", v); }

double gap_of(const BenchRow& r) {
  return r.bound_is_upper ? relative_gap(*r.bound, r.value) : relative_gap(r.value, *r.bound);
}

std::optional<double> integral_of(const BenchRow& r) {
  if (r.trajectory.empty()) return std::nullopt;
  return primal_integral(r.trajectory, r.best_known, r.horizon_s);
}

// The best value and the bound after 1, 10 and 60 s, as far as planning took that long.
Json milestones_json(const BenchRow& r) {
  Json after = Json::array();
  if (r.trajectory.empty()) return after;
  for (const auto& i : milestones(r.trajectory, r.trajectory.back().seconds))
    after.push_back({i.seconds, std::isfinite(i.value_us) ? Json(i.value_us) : Json(), i.bound_us});
  return after;
}

Json row_json(const BenchRow& r) {
  const auto integral = integral_of(r);
  return {{"suite", r.suite},
          {"instance", r.instance},
          {"planner", r.planner},
          {"metric", r.metric},
          {"unit", r.unit},
          {"value", r.value},
          {"baseline", r.baseline},
          {"baseline_value", r.baseline_value ? Json(*r.baseline_value) : Json()},
          {"reference", r.reference ? Json(*r.reference) : Json()},
          {"reference_source", r.reference_source},
          {"bound", r.bound ? Json(*r.bound) : Json()},
          {"bound_is", r.bound ? Json(r.bound_is_upper ? "upper" : "lower") : Json()},
          {"fails", r.fails},
          {"seconds", r.seconds ? Json(*r.seconds) : Json()},
          {"primal_integral_s", integral ? Json(*integral) : Json()},
          {"after", milestones_json(r)}};
}

}  // namespace

Json rows_json(const std::vector<BenchRow>& rows) {
  Json json = Json::array();
  for (const BenchRow& r : rows) json.push_back(row_json(r));
  return json;
}

// The instance's name stands above its table, so that what is left fits 100 columns, and only words are ever
// cut. Columns without content are left out.
std::string rows_text(const std::vector<BenchRow>& rows) {
  // Suites whose problems have proven bounds: values are compared to more digits.
  const bool bounded =
      std::any_of(rows.begin(), rows.end(), [](const BenchRow& r) { return r.bound.has_value(); });
  const auto shown = bounded ? number7 : cell;
  using Align = TextTable::Align;
  const std::vector<TextTable::Column> all = {
      {"metric", Align::kLeft, 40},   {"value", Align::kRight},   {"beside it", Align::kRight},
      {"baseline", Align::kLeft, 22}, {"target", Align::kRight},  {"bound", Align::kRight},
      {"gap", Align::kRight},         {"seconds", Align::kRight}, {"integral s", Align::kRight}};
  std::string text;
  for (size_t from = 0, to = 0; from < rows.size(); from = to) {
    std::vector<std::vector<std::string>> lines;
    std::vector<bool> filled(all.size(), false);
    for (; to < rows.size() && rows[to].instance == rows[from].instance; ++to) {
      const BenchRow& r = rows[to];
      const auto integral = integral_of(r);
      lines.push_back({r.metric, shown(r.value) + (r.unit.empty() ? "" : " " + r.unit),
                       r.baseline_value ? shown(*r.baseline_value) : "", r.baseline,
                       r.reference ? shown(*r.reference) : "", r.bound ? shown(*r.bound) : "",
                       r.bound && *r.bound > 0 ? (beyond_bound(r) ? "beyond" : percent(gap_of(r))) : "",
                       r.seconds ? cell(*r.seconds) : "", integral ? cell(*integral) : ""});
      for (size_t c = 0; c < all.size(); ++c) filled[c] = filled[c] || !lines.back()[c].empty();
    }
    std::vector<TextTable::Column> columns;
    for (size_t c = 0; c < all.size(); ++c) {
      if (filled[c]) columns.push_back(all[c]);
    }
    TextTable table(columns);
    for (const auto& line : lines) {
      std::vector<std::string> cells;
      for (size_t c = 0; c < all.size(); ++c) {
        if (filled[c]) cells.push_back(line[c]);
      }
      table.add_row(std::move(cells));
    }
    text += (text.empty() ? "" : "\n") + rows[from].instance + "\n" + table.to_string();
  }
  return text;
}

bool beyond_bound(const BenchRow& r) {
  if (!r.bound) return false;
  const double rounding = kBoundRounding * std::abs(*r.bound);
  return r.bound_is_upper ? r.value > *r.bound + rounding : r.value < *r.bound - rounding;
}

void set_trajectory(BenchRow& row, std::vector<Incumbent> trajectory, double horizon_s) {
  row.trajectory = std::move(trajectory);
  row.horizon_s = horizon_s;
}

void share_best_known(std::vector<BenchRow>& rows, size_t first, double reference) {
  double best = reference > 0 ? reference : std::numeric_limits<double>::infinity();
  for (size_t i = first; i < rows.size(); ++i) {
    if (!rows[i].trajectory.empty()) best = std::min(best, rows[i].trajectory.back().value_us);
  }
  for (size_t i = first; i < rows.size(); ++i) rows[i].best_known = best;
}

BenchRow bench_row(std::string suite, std::string instance, std::string planner, std::string metric,
                   std::string unit, double value) {
  BenchRow r;
  r.suite = std::move(suite);
  r.instance = std::move(instance);
  r.planner = std::move(planner);
  r.metric = std::move(metric);
  r.unit = std::move(unit);
  r.value = value;
  return r;
}

Result<Problem> bench_problem(std::shared_ptr<const Graph> graph, const std::string& cluster,
                              const CostModel& model) {
  Problem problem;
  problem.graph = std::move(graph);
  HEDDLE_ASSIGN_OR_RETURN(problem.cluster, load_cluster(cluster));
  HEDDLE_ASSIGN_OR_RETURN(auto costs, build_cost_table(*problem.graph, *problem.cluster, model, {}));
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  return problem;
}

Status check_parts(const BenchOptions& options, std::span<const std::string> parts) {
  for (const auto& part : options.only) {
    if (std::ranges::find(parts, part) == parts.end())
      return invalid_input("--only " + part + ": the suite has no such part" + did_you_mean(part, parts) +
                           "; there are " + join_names(parts));
  }
  return {};
}

Status check_substrings(const BenchOptions& options, std::span<const std::string> names) {
  for (const auto& part : options.only) {
    if (std::ranges::none_of(names, [&](const auto& name) { return name.find(part) != std::string::npos; }))
      return invalid_input("--only " + part + ": no instance has that in its name");
  }
  return {};
}

bool wanted(const BenchOptions& options, std::string_view part) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), part) != options.only.end();
}

void NamedProgress::report(const ProgressUpdate& update) {
  if (sink_ == nullptr) return;
  ProgressUpdate named = update;
  named.what = name_ + ": " + update.what;
  sink_->report(named);
}

void NamedProgress::finish() {
  if (sink_ != nullptr) sink_->finish();
}

PlannerOptions planner_options(const BenchOptions& options, double seconds, const Control& control) {
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(seconds, control.cancel);
  o.seed = static_cast<uint64_t>(options.seed);
  o.threads = static_cast<int>(options.threads.value_or(1));
  o.progress = control.progress;
  return o;
}

}  // namespace heddle::bench
