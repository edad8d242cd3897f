#include <array>
#include <cmath>

#include "cp_sat_library.h"
#include "heddle/solve/self_test.h"
#include "wire_format.h"

namespace heddle {
namespace {

constexpr double kTolerance = 1e-6;
constexpr int64_t kHorizon = 20;
constexpr int64_t kStatusOptimal = 4;  // CpSolverStatus::OPTIMAL

// Three tasks on one machine, minimising the weighted sum of completion times. By Smith's rule they run in
// order of time / weight: the second (2/4), the third (4/2), the first (3/1). They end at 2, 6 and 9: 4*2 +
// 2*6 + 1*9 = 29.
struct Task {
  int64_t time, weight;
};
constexpr std::array<Task, 3> kTasks = {{{3, 1}, {2, 4}, {4, 2}}};
constexpr double kOptimum = 29;

// offset + variable, or only the offset (a LinearExpressionProto).
wire::Writer test_expression(int64_t offset, std::optional<int64_t> variable = std::nullopt) {
  wire::Writer e;
  if (variable) e.packed_field(1, {*variable}).packed_field(2, {1});
  return e.varint_field(3, offset);
}

// Variable i is the start of task i, constraint i its interval; the last one is their no_overlap.
std::string make_model() {
  wire::Writer model;
  double constant = 0;  // a completion time is a start plus a constant
  for (const Task& task : kTasks) {
    model.message_field(2, wire::Writer().packed_field(2, {0, kHorizon - task.time}));
    constant += static_cast<double>(task.weight * task.time);
  }
  for (size_t i = 0; i < kTasks.size(); ++i) {
    const auto start = static_cast<int64_t>(i);
    wire::Writer interval;
    interval.message_field(4, test_expression(0, start))
        .message_field(5, test_expression(kTasks[i].time, start))
        .message_field(6, test_expression(kTasks[i].time));
    model.message_field(3, wire::Writer().message_field(19, interval));
  }
  model.message_field(3, wire::Writer().message_field(20, wire::Writer().packed_field(1, {0, 1, 2})));
  wire::Writer objective;
  objective.packed_field(1, {0, 1, 2})
      .double_field(2, constant)
      .packed_field(4, {kTasks[0].weight, kTasks[1].weight, kTasks[2].weight});
  return model.message_field(4, objective).bytes();
}

}  // namespace

Result<SolverSelfTest> cp_sat_self_test() {
  SolverSelfTest result;
  result.cp_sat_version = cp_sat_version();
  result.cp_sat_expected = kOptimum;
  // num_workers: one thread, so that the answer does not depend on the machine.
  const std::string parameters = wire::Writer().varint_field(206, 1).bytes();
  HEDDLE_ASSIGN_OR_RETURN(const std::string response, cp_sat_solve(make_model(), parameters));
  const auto failed = [&](const std::string& what) {
    return Error(Code::kInternal,
                 what + "; run `make setup` for the release of ortools that Heddle is tested with")
        .with_context("self-test of CP-SAT in OR-Tools " + result.cp_sat_version);
  };
  int64_t status = 0;
  wire::Reader reader(response);
  while (const auto field = reader.next()) {
    if (field->number == 1) status = static_cast<int64_t>(field->integer);
    if (field->number == 3) result.cp_sat_value = field->as_double();
  }
  if (reader.malformed()) return failed("the response cannot be read");
  if (status != kStatusOptimal) return failed("expected status 4 (optimal), got " + std::to_string(status));
  if (!(std::fabs(result.cp_sat_value - kOptimum) <= kTolerance)) {
    return failed("the optimum is 29 but it answered " + std::to_string(result.cp_sat_value));
  }
  return result;
}

}  // namespace heddle
