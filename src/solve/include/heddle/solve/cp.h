// Constraint programs over integers with intervals, solved by CP-SAT.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/solve/solution.h"

namespace heddle {

struct CpVar {
  int32_t index = -1;
  friend bool operator==(CpVar, CpVar) = default;
};

// A 0/1 variable or its negation.
struct CpLit {
  int32_t ref = 0;  // index, or -index-1 for the negation
  CpLit operator!() const { return {-ref - 1}; }
  CpVar var() const { return {ref < 0 ? -ref - 1 : ref}; }
  bool negated() const { return ref < 0; }
};

struct CpTerm {
  CpVar var;
  int64_t coefficient = 1;
};
// sum of terms + constant
struct CpExpr {
  std::vector<CpTerm> terms;
  int64_t constant = 0;
  CpExpr() = default;
  CpExpr(int64_t value) : constant(value) {}  // NOLINT: implicit on purpose
  CpExpr(CpVar var) : terms{{var, 1}} {}      // NOLINT: implicit on purpose
  CpExpr& add(CpVar var, int64_t coefficient);
  CpExpr& add(CpLit literal, int64_t coefficient);  // coefficient times (literal ? 1 : 0)
  CpExpr& add(int64_t value);
};

struct CpInterval {
  int32_t index = -1;
};

class CpModel {
 public:
  CpModel();
  ~CpModel();
  CpModel(CpModel&&) noexcept;
  CpModel& operator=(CpModel&&) noexcept;

  CpVar add_integer(int64_t lower, int64_t upper, std::string name = {});
  CpLit add_literal(std::string name = {});
  CpLit true_literal();

  // Each constraint holds only if all literals of `when` are true (none: always).
  void linear(int64_t lower, CpExpr expr, int64_t upper, std::span<const CpLit> when = {});
  void any_of(std::span<const CpLit> literals, std::span<const CpLit> when = {});
  void all_of(std::span<const CpLit> literals, std::span<const CpLit> when);
  void exactly_one(std::span<const CpLit> literals);
  void at_most_one(std::span<const CpLit> literals);
  // target == max of exprs. Each expression may have at most one variable, as CP-SAT requires.
  void maximum(CpExpr target, std::vector<CpExpr> exprs);

  // start + size == end if all literals of `when` are true. Expressions of at most one variable each; the
  // size's bounds must be at least 0.
  CpInterval interval(CpExpr start, CpExpr size, CpExpr end, std::span<const CpLit> when = {});
  // The present intervals can be ordered so that each ends before the next starts. An interval of size 0 must
  // not lie inside another one.
  void no_overlap(std::span<const CpInterval> intervals);

  void minimise(CpExpr objective);
  // The start of the search; the last value per variable counts. A complete feasible hint is returned if the
  // search stops without a better solution.
  void hint(CpVar var, int64_t value);

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Checks every solution against the model before returning it: kInternal if it violates the model.
// kInvalidInput for an inconsistent model, variable bounds beyond 2^53, or expressions that may exceed 2^61.
// kUnsupported when the library cannot be loaded (never possible in sanitizer builds). Thread-safe.
//
// The search is asked to stop within 10 ms of a cancellation and 50 ms before the deadline. CP-SAT does not
// poll while it presolves a large model: 50 ms after the stop the call returns the hint, or no values, and
// the search ends on its own thread. It always uses one worker, since only then is it
// deterministic. on_progress receives only the complete hint and the final answer, since the C interface
// reports nothing else.
Result<Solution> solve(const CpModel& model, const SolveOptions& options = {});

// "", or a description of the first constraint that `values` violate.
std::string violation(const CpModel& model, std::span<const int64_t> values);

}  // namespace heddle
