// Mixed-integer linear programs: minimise c'x + c0 subject to rows lower <= a'x <= upper. Solved by
// HiGHS; can be written as LP files for other solvers.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/solve/solution.h"

namespace heddle {

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct Var {
  int32_t index = -1;
  friend bool operator==(Var, Var) = default;
};

struct Term {
  Var var;
  double coefficient = 1;
};

enum class VarKind : uint8_t { kContinuous, kInteger, kBinary };

class Milp {
 public:
  struct Variable {
    double lower = 0, upper = kNoBound, cost = 0;
    VarKind kind = VarKind::kContinuous;
    std::string name;  // may be empty: x<index> in files
  };
  struct Row {
    double lower = -kNoBound, upper = kNoBound;
    std::vector<Term> terms;  // each variable once: add_row() sums equal variables
    std::string name;
  };
  // binary == value implies lower <= terms <= upper.
  struct Indicator {
    Var binary;
    bool value = true;
    Row row;
  };

  Var add_continuous(double lower, double upper, std::string name = {});
  Var add_integer(double lower, double upper, std::string name = {});
  Var add_binary(std::string name = {});
  void set_bounds(Var var, double lower, double upper);
  // Adds to the variable's objective coefficient.
  void add_cost(Var var, double cost);
  void add_constant(double constant) { constant_ += constant; }

  void add_row(double lower, std::vector<Term> terms, double upper, std::string name = {});
  void at_most(std::vector<Term> terms, double upper, std::string name = {});
  void at_least(std::vector<Term> terms, double lower, std::string name = {});
  void equal(std::vector<Term> terms, double value, std::string name = {});
  // HiGHS has no indicators: solve() writes big-M rows with the smallest M that the variables' bounds allow.
  // It rejects a row whose terms are unbounded on a side that needs M.
  void add_indicator(Var binary, bool value, double lower, std::vector<Term> terms, double upper,
                     std::string name = {});
  // The start of the search; the last value per variable counts. The solver completes missing values.
  void set_start(Var var, double value);

  std::span<const Variable> variables() const { return variables_; }
  std::span<const Row> rows() const { return rows_; }
  std::span<const Indicator> indicators() const { return indicators_; }
  std::span<const std::pair<Var, double>> start() const { return start_; }
  double constant() const { return constant_; }
  double objective(std::span<const double> values) const;
  // The variable's name, or "x3".
  std::string name(Var var) const;
  // The first call that named an unknown variable, or "". Such a call has no other effect; solve() and the
  // writers then reject the model (kInvalidInput).
  const std::string& wrong_use() const { return wrong_use_; }
  // An equivalent model without indicators; fails under the condition stated at add_indicator().
  Result<Milp> without_indicators() const;
  // Drops integrality; the bounds stay.
  void make_continuous();

 private:
  std::vector<Variable> variables_;
  std::vector<Row> rows_;
  std::vector<Indicator> indicators_;
  std::vector<std::pair<Var, double>> start_;
  double constant_ = 0;
  std::string wrong_use_;

  Var add(double lower, double upper, VarKind kind, std::string name);
  bool has(Var var, const char* where);
  Row make_row(double lower, std::vector<Term> terms, double upper, std::string name);
};

// Checks every solution against the model (bounds, integrality, rows, indicators) by code that shares nothing
// with the solver: kInternal if it violates the model. kInvalidInput for an inconsistent model (lower >
// upper, NaN, a variable of another model). Thread-safe. Returns within 100 ms of the deadline or a
// cancellation; a HiGHS that has not stopped by then ends on its own thread.
Result<Solution> solve(const Milp& model, const SolveOptions& options = {});
// Drops integrality: the objective is a bound on the model's. Same rules.
Result<Solution> solve_relaxation(const Milp& model, const SolveOptions& options = {});

// A lower bound on the LP's objective that needs no trust in a solver: any `duals` (one per row) give one, those
// of the optimum the best. Integrality is ignored. A variable without an upper bound counts as at most `most`,
// so the bound holds for solutions within that. Rounding is accounted for. -infinity: these duals prove
// nothing. The model must have no indicators. O(entries).
double lp_dual_bound(const Milp& model, std::span<const double> duals, double most = kNoBound);

// "", or the largest violation by `values`, with the row's or variable's name. The tolerance is 1e-6, absolute
// and relative to the row's largest term.
std::string violation(const Milp& model, std::span<const double> values);

// CPLEX LP format, with indicators as such.
Result<std::string> to_lp(const Milp& model);

}  // namespace heddle
