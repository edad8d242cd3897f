// One model answered several times: by different solvers, with presolve and without. No two true answers
// contradict each other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"

namespace heddle {

struct SolverAnswer {
  std::string by;  // "HiGHS 1.15.1 without presolve"
  SolveStatus status = SolveStatus::kUnknown;
  double value = std::numeric_limits<double>::infinity(), bound = -std::numeric_limits<double>::infinity();
  std::string fault;  // why there is no answer, such as a solution that breaks the model
};

// With presolve and without; a CP model by CP-SAT and, as a MILP, by HiGHS. Values beyond some 10,000 are
// outside HiGHS's tolerances in such a MILP, so then only CP-SAT answers.
std::vector<SolverAnswer> all_answers(const CpModel& model, const SolveOptions& options = {});
std::vector<SolverAnswer> all_answers(const Milp& model, const SolveOptions& options = {});

// "", or the first contradiction: a fault, a bound above another's value, a value of a model without any.
// Values may differ by 1e-5, relative above 1.
std::string contradiction(std::span<const SolverAnswer> answers);

// The same model for HiGHS, with the objective's value. Orders of intervals become binaries.
Milp to_milp(const CpModel& model);
// CpModelProto in protobuf's text format, which OR-Tools reads.
std::string to_text(const CpModel& model);

}  // namespace heddle
