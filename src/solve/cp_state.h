// The contents of a CpModel, for the serialiser, the check and the solver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/solve/cp.h"

namespace heddle {

namespace cp {
struct Linear {
  int64_t lower, upper;
  CpExpr expr;
};
struct AnyOf {
  std::vector<CpLit> literals;
};
struct AllOf {
  std::vector<CpLit> literals;
};
struct ExactlyOne {
  std::vector<CpLit> literals;
};
struct AtMostOne {
  std::vector<CpLit> literals;
};
struct Maximum {
  CpExpr target;
  std::vector<CpExpr> exprs;
};
struct Interval {
  CpExpr start, size, end;
};
struct NoOverlap {
  std::vector<CpInterval> intervals;
};
struct Cumulative {
  std::vector<CpInterval> intervals;
  std::vector<CpExpr> demands;
  CpExpr capacity;
};
struct Circuit {
  std::vector<CpModel::Arc> arcs;
};
}  // namespace cp

struct CpModel::State {
  struct Variable {
    int64_t lower, upper;
    std::string name;
  };
  struct Constraint {
    std::vector<CpLit> when;
    std::variant<cp::Linear, cp::AnyOf, cp::AllOf, cp::ExactlyOne, cp::AtMostOne, cp::Maximum, cp::Interval,
                 cp::NoOverlap, cp::Cumulative, cp::Circuit>
        what;
  };
  std::vector<Variable> variables;
  std::vector<Constraint> constraints;
  std::vector<size_t> intervals;  // CpInterval::index -> constraint
  std::optional<CpExpr> objective;
  std::vector<std::pair<CpVar, int64_t>> hints;
  CpLit always{0};  // valid when has_always
  bool has_always = false;
};

// kInvalidInput for unknown variables and intervals, literals of non-binaries, lower > upper, expressions of
// several variables if only one is allowed, and values so large that CP-SAT's 64-bit sums could overflow.
Status check_model(const CpModel& model);

// The value of the expression in 128 bits: cannot overflow.
__extension__ using Wide = __int128;
Wide evaluate(const CpExpr& expr, std::span<const int64_t> values);
bool is_true(CpLit literal, std::span<const int64_t> values);
bool holds(std::span<const CpLit> when, std::span<const int64_t> values);

// The smallest and the largest value of an expression within its variables' bounds.
std::pair<Wide, Wide> range_of(const CpExpr& expr, const CpModel::State& state);

// The same expression with each variable once, in order of index, without zeros.
CpExpr normalised(const CpExpr& expr);

}  // namespace heddle
