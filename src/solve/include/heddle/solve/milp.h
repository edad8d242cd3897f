// Mixed-integer linear programs: minimise c'x + c0 subject to rows lower <= a'x <= upper. Solved by HiGHS, or
// by the user's Gurobi (docs/solvers.md); written as LP files for Gurobi.
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
    std::string name;  // may be empty: then x<index> in files
  };
  struct Row {
    double lower = -kNoBound, upper = kNoBound;
    std::vector<Term> terms;  // each variable once: the terms of equal variables are added up
    std::string name;
  };
  // binary == value forces lower <= terms <= upper.
  struct Indicator {
    Var binary;
    bool value = true;
    Row row;
  };

  Var add_continuous(double lower, double upper, std::string name = {});
  Var add_integer(double lower, double upper, std::string name = {});
  Var add_binary(std::string name = {});
  void set_bounds(Var var, double lower, double upper);
  // Adds to the objective's coefficient.
  void add_cost(Var var, double cost);
  void add_constant(double constant) { constant_ += constant; }

  void add_row(double lower, std::vector<Term> terms, double upper, std::string name = {});
  void at_most(std::vector<Term> terms, double upper, std::string name = {});
  void at_least(std::vector<Term> terms, double lower, std::string name = {});
  void equal(std::vector<Term> terms, double value, std::string name = {});
  // HiGHS has no indicators: solve() writes them with the smallest constant that the variables' bounds give,
  // and refuses a row whose terms are not bounded on the side that it needs.
  void add_indicator(Var binary, bool value, double lower, std::vector<Term> terms, double upper,
                     std::string name = {});
  // Where the search starts; variables without a value are completed by the solver. The last value counts.
  void set_start(Var var, double value);

  std::span<const Variable> variables() const { return variables_; }
  std::span<const Row> rows() const { return rows_; }
  std::span<const Indicator> indicators() const { return indicators_; }
  std::span<const std::pair<Var, double>> start() const { return start_; }
  double constant() const { return constant_; }
  double objective(std::span<const double> values) const;
  // "x3", or the name that it was given.
  std::string name(Var var) const;
  // The first call that named a variable which the model does not have, or an empty string. Such a call
  // changes nothing; solve() and the writers refuse the model (kInvalidInput).
  const std::string& wrong_use() const { return wrong_use_; }
  // The same model without indicators; fails as add_indicator() says.
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

  bool has(Var var, const char* where);
  Row make_row(double lower, std::vector<Term> terms, double upper, std::string name);
};

// Every returned solution was checked again against the model (bounds, integrality, rows, indicators) by code
// that shares nothing with the solver: one that fails is kInternal. A model that makes no sense (lower >
// upper, NaN, a variable of another model) is kInvalidInput. Thread-safe. The answer comes within 100 ms of
// the deadline or the cancellation: a HiGHS that does not stop by then is left to end on its own thread.
// HEDDLE_MILP_SOLVER=gurobi: by gurobi_cl, which has half a second more; kUnsupported when there is none.
Result<Solution> solve(const Milp& model, const SolveOptions& options = {});
// Without integrality: its objective is a bound on the model's. Same rules.
Result<Solution> solve_relaxation(const Milp& model, const SolveOptions& options = {});

// How far `values` are from the model: an empty string, or the worst violation with the row's or variable's
// name. `tolerance` is absolute and relative to the row's largest term.
std::string violation(const Milp& model, std::span<const double> values, double tolerance = 1e-6);

// CPLEX LP format, with indicators as such.
Result<std::string> to_lp(const Milp& model);

}  // namespace heddle
