// The suite solvers: random models answered by both solvers, with presolve and without, and by trying everything. A
// model whose answers contradict each other is kept in a file.
#include <algorithm>
#include <array>

#include "heddle/base/file.h"
#include "heddle/solve/cross_check.h"
#include "heddle/solve/small_models.h"
#include "solvers/assignment_problem.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr double kWork = 10;  // of each answer; then it is undecided

// A model's answers, and its text for a file.
struct CheckedModel {
  std::vector<SolverAnswer> answers;
  std::string extension, text;
};

SolverAnswer by_trying_all(std::optional<double> least) {
  const double value = least.value_or(kNoBound);
  return {"trying all solutions", least ? SolveStatus::kOptimal : SolveStatus::kInfeasible, value, value, ""};
}

CheckedModel checked(const CpModel& model, const SolveOptions& options) {
  return {all_answers(model, options), ".pb.txt", to_text(model)};
}

Result<CheckedModel> check_small(Random& random, const SolveOptions& options) {
  const auto shape = static_cast<ModelShape>(random.below(kModelShapes));
  const SmallModel small = random_small_model(random, shape);
  CheckedModel result;
  if (small.unit == 1) {
    result = checked(to_cp(small), options);
  } else {
    const Milp milp = to_milp(small);
    HEDDLE_ASSIGN_OR_RETURN(result.text, to_lp(milp));
    result.answers = all_answers(milp, options);
    result.extension = ".lp";
  }
  const auto least = small.least();
  std::optional<double> value;
  if (least) value = static_cast<double>(*least) / static_cast<double>(small.unit);
  result.answers.push_back(by_trying_all(value));
  return result;
}

Result<CheckedModel> check_assignment(bool schedule, Random& random, const SolveOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, random_assignment_problem(random));
  CheckedModel result =
      checked(schedule ? schedule_model(problem) : placement_model(problem, random), options);
  bool tried = false;
  const auto least = schedule ? least_end(problem, tried) : least_load(problem, tried);
  if (tried) result.answers.push_back(by_trying_all(least));
  return result;
}

// What a part of the suite has counted.
class SolversPart {
 public:
  explicit SolversPart(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  Status check(uint64_t seed, const SolveOptions& options) {
    Random random(seed);
    HEDDLE_ASSIGN_OR_RETURN(const CheckedModel model,
                            name_ == "shapes" ? check_small(random, options)
                                              : check_assignment(name_ == "schedules", random, options));
    if (options.deadline.cancelled()) return {};
    ++models_;
    answers_ += model.answers.size();
    const auto count = [&](auto match) { return std::ranges::count_if(model.answers, match) > 0; };
    infeasible_ += count([](const auto& a) { return a.status == SolveStatus::kInfeasible; });
    undecided_ += count([](const auto& a) {
      return a.status == SolveStatus::kFeasible || a.status == SolveStatus::kUnknown;
    });
    tried_ += count([](const auto& a) { return a.by == by_trying_all({}).by; });
    milps_ += count([](const auto& a) { return a.by.starts_with("HiGHS"); });
    const std::string wrong = contradiction(model.answers);
    return wrong.empty() ? Status() : keep(seed, model, wrong);
  }

  void add_rows(std::vector<BenchRow>& rows) const {
    const auto add = [&](const char* metric, uint64_t value) {
      rows.push_back(bench_row("solvers", name_, "", metric, "", static_cast<double>(value)));
    };
    add("models", models_);
    add("answers", answers_);
    add("models solved by HiGHS, too", milps_);
    add("models with all solutions tried", tried_);
    add("models without a solution", infeasible_);
    add("models with an undecided answer", undecided_);
    add("contradictions", kept_.size());
    rows.back().fails = !kept_.empty();
    for (const std::string& kept : kept_) {
      rows.push_back(bench_row("solvers", name_, "", kept, "", 1));
      rows.back().fails = true;
    }
  }

 private:
  Status keep(uint64_t seed, const CheckedModel& model, const std::string& wrong) {
    const std::string file = "solvers-" + name_ + "-" + std::to_string(seed) + model.extension;
    const std::string comment = model.extension == ".lp" ? "\\ " : "# ";
    std::string text = comment + wrong + "\n";
    for (const SolverAnswer& a : model.answers) {
      text += comment + a.by + ": " + solve_status_name(a.status) + ", value " + std::to_string(a.value) +
              ", bound " + std::to_string(a.bound) + (a.fault.empty() ? "" : ", " + a.fault) + "\n";
    }
    kept_.push_back(file + ": " + wrong);
    return write_file_atomic(file, text + model.text);
  }

  const std::string name_;
  uint64_t models_ = 0, answers_ = 0, milps_ = 0, tried_ = 0, infeasible_ = 0, undecided_ = 0;
  std::vector<std::string> kept_;  // files, each with what is wrong
};

}  // namespace

Result<std::vector<BenchRow>> bench_solvers(const BenchOptions& options, const Control& control) {
  // Without CP-SAT there is little to compare.
  HEDDLE_RETURN_IF_ERROR(solve(CpModel()));
  std::vector<SolversPart> parts;
  for (const char* name : {"shapes", "schedules", "placements"}) {
    if (wanted(options, name)) parts.emplace_back(name);
  }
  const auto first = static_cast<uint64_t>(options.seed);
  for (uint64_t i = 0; !parts.empty() && i < static_cast<uint64_t>(options.instances); ++i) {
    if (control.cancel.cancelled()) break;
    control.report("models", static_cast<double>(i), static_cast<double>(options.instances));
    SolveOptions solve_options{.deadline = control.deadline(), .work = kWork};
    solve_options.seed = first + i;
    HEDDLE_RETURN_IF_ERROR(parts[i % parts.size()].check(first + i, solve_options));
  }
  std::vector<BenchRow> rows;
  for (const SolversPart& part : parts) part.add_rows(rows);
  return rows;
}

}  // namespace heddle::bench
