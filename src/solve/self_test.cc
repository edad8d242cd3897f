#include "heddle/solve/self_test.h"

#include <array>
#include <map>
#include <optional>

#include "heddle/solve/cross_check.h"
#include "heddle/solve/small_models.h"

namespace heddle {
namespace {

constexpr int kModelsOfEachShape = 20;

// Counts answers to models whose optimum is known.
class SelfTest {
 public:
  explicit SelfTest(std::string solver) : place_("self-test of " + std::move(solver)) {}

  // `truth`: nothing if no solution exists.
  Status compare(const std::string& shape, const Result<Solution>& solution, std::optional<double> truth) {
    ++models_;
    if (!solution.ok()) {
      if (solution.error().code() != Code::kInternal) return Error(solution.error()).with_context(place_);
      count_wrong(shape, solution.error().to_string());
      return {};
    }
    name_ = solution->solver;
    SolverAnswer answer{name_, solution->status, solution->objective, solution->bound, ""};
    const SolverAnswer known{"trying all points", truth ? SolveStatus::kOptimal : SolveStatus::kInfeasible,
                             truth.value_or(kNoBound), truth.value_or(kNoBound), ""};
    const std::array answers = {answer, known};
    std::string wrong = contradiction(answers);
    if (wrong.empty() && answer.status != known.status)
      wrong = name_ + " ends with " + solve_status_name(answer.status);
    if (!wrong.empty()) count_wrong(shape, wrong);
    return {};
  }

  // `solve_small` answers a SmallModel.
  Status compare_shapes(std::span<const ModelShape> shapes, const auto& solve_small) {
    for (const ModelShape shape : shapes) {
      Random random(1);
      for (int i = 0; i < kModelsOfEachShape; ++i) {
        const SmallModel model = random_small_model(random, shape);
        const auto least = model.least();
        std::optional<double> truth;
        if (least) truth = static_cast<double>(*least) / static_cast<double>(model.unit);
        HEDDLE_RETURN_IF_ERROR(compare(model_shape_name(shape), solve_small(model), truth));
      }
    }
    return {};
  }

  Result<SolverSelfTest> result() const {
    if (wrong_.empty()) return SolverSelfTest{name_.substr(name_.rfind(' ') + 1), models_};
    std::string counts;
    for (const auto& [shape, count] : wrong_)
      counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " of " + shape;
    return internal_error(std::to_string(models_) + " models, wrong answers: " + counts +
                          "; the first: " + first_ +
                          "; run `make setup` for the releases of the solvers that Heddle is tested with")
        .with_context(place_);
  }

 private:
  void count_wrong(const std::string& shape, std::string what) {
    if (wrong_.empty()) first_ = std::move(what);
    ++wrong_[shape];
  }

  std::string place_, name_, first_;
  std::map<std::string, int> wrong_;
  int models_ = 0;
};

}  // namespace

// The first model: minimise 2x + 3z subject to x + z >= 4.5, 0 <= x <= 10, 0 <= z <= 10 and integer. x costs
// less per unit of the constraint and may be fractional, so the optimum is x = 4.5, z = 0 with value 9.
// HiGHS 1.14's presolve fixes z first and returns 15 (ERGO-Code/HiGHS, issue 3043).
Result<SolverSelfTest> highs_self_test() {
  SelfTest test("HiGHS");
  Milp model;
  const Var x = model.add_continuous(0, 10), z = model.add_integer(0, 10);
  model.add_cost(x, 2);
  model.add_cost(z, 3);
  model.at_least({{x, 1}, {z, 1}}, 4.5);
  HEDDLE_RETURN_IF_ERROR(test.compare("a column beside an integer", solve(model), 9));
  constexpr std::array kShapes = {ModelShape::kIntegerRows, ModelShape::kContinuousBesideInteger};
  HEDDLE_RETURN_IF_ERROR(
      test.compare_shapes(kShapes, [](const SmallModel& small) { return solve(to_milp(small)); }));
  return test.result();
}

// The first model: three tasks on one machine, minimising the weighted sum of completion times. By Smith's
// rule they run in order of time / weight: the second (2/4), the third (4/2), the first (3/1). They end at 2,
// 6 and 9: 4*2 + 2*6 + 1*9 = 29.
Result<SolverSelfTest> cp_sat_self_test() {
  struct Task {
    int64_t time, weight;
  };
  constexpr std::array<Task, 3> kTasks = {{{3, 1}, {2, 4}, {4, 2}}};
  CpModel model;
  CpExpr objective;
  std::vector<CpInterval> intervals;
  for (const Task& task : kTasks) {
    const CpVar start = model.add_integer(0, 20);
    intervals.push_back(model.interval(start, task.time, CpExpr(start).add(task.time)));
    objective.add(start, task.weight).add(task.weight * task.time);
  }
  model.no_overlap(intervals);
  model.minimise(std::move(objective));
  SelfTest test("CP-SAT");
  HEDDLE_RETURN_IF_ERROR(test.compare("tasks on one machine", solve(model), 29));
  constexpr std::array kShapes = {ModelShape::kIntegerRows, ModelShape::kAtMostOneBesideRows,
                                  ModelShape::kEnforcedRows};
  HEDDLE_RETURN_IF_ERROR(
      test.compare_shapes(kShapes, [](const SmallModel& small) { return solve(to_cp(small)); }));
  return test.result();
}

}  // namespace heddle
