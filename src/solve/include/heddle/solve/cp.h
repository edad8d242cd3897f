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

  // Each constraint holds only where all literals of `when` are true (none: always).
  void linear(int64_t lower, CpExpr expr, int64_t upper, std::span<const CpLit> when = {});
  void any_of(std::span<const CpLit> literals, std::span<const CpLit> when = {});
  void all_of(std::span<const CpLit> literals, std::span<const CpLit> when);
  void exactly_one(std::span<const CpLit> literals);
  void at_most_one(std::span<const CpLit> literals);
  // target == max of exprs (expressions of at most one variable each, as CP-SAT asks).
  void maximum(CpExpr target, std::vector<CpExpr> exprs);

  // start + size == end wherever all literals of `when` are true. Expressions of at most one variable each;
  // the size's bounds are not below 0.
  CpInterval interval(CpExpr start, CpExpr size, CpExpr end, std::span<const CpLit> when = {});
  // In some order each present interval ends before the next starts: one of size 0 may not lie inside
  // another.
  void no_overlap(std::span<const CpInterval> intervals);
  // At no time do the present intervals [start, end) demand more than the capacity. Demands and capacity are
  // expressions of at most one variable each, whose bounds are not below 0.
  void cumulative(std::span<const CpInterval> intervals, std::vector<CpExpr> demands, CpExpr capacity);
  struct Arc {
    int32_t tail = 0, head = 0;
    CpLit literal;
  };
  // The true arcs form one cycle through all nodes; a node with a true self-arc is left out (all may be).
  // Nodes are numbered from 0 without gaps.
  void circuit(std::span<const Arc> arcs);

  void minimise(CpExpr objective);
  // Where the search starts. A complete hint that fits is answered when the search is stopped without better.
  // The last value counts.
  void hint(CpVar var, int64_t value);

  size_t num_variables() const;
  size_t num_constraints() const;
  // The serialised CpModelProto (OR-Tools reads it), for use elsewhere.
  std::string to_bytes() const;

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Every returned solution was checked again against the model by this layer: one that fails is kInternal. A
// model that makes no sense is kInvalidInput, and so is one whose variables' bounds exceed 2^53 or whose
// expressions may exceed 2^61. kUnsupported when the library cannot be loaded (in sanitizer builds it never
// can). Thread-safe.
//
// The stop is asked for within 10 ms of the cancellation and 50 ms before the deadline. CP-SAT does not look
// up while it simplifies a large model; 50 ms after the stop the caller gets the hint, or no values, and the
// search is left to end on its own thread.
// `deterministic` uses one worker whatever `threads` says. on_progress hears of the complete hint and of the
// answer: CP-SAT's C interface tells nothing in between.
Result<Solution> solve(const CpModel& model, const SolveOptions& options = {});

// An empty string, or the first constraint that `values` break.
std::string violation(const CpModel& model, std::span<const int64_t> values);

}  // namespace heddle
