#include "workbench_cold.h"

#include <charconv>

#include "heddle/plan/cold_start.h"

namespace heddle::cli {
namespace {

Result<std::vector<std::vector<ParamId>>> residents(const Problem& problem, const std::string& text) {
  double fraction = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), fraction);
  if (code != std::errc() || end != text.data() + text.size()) return resident_from_file(problem, text);
  auto found = resident_fraction(problem, fraction);
  if (!found.ok()) return std::move(found).error().with_context("--resident " + text);
  return found;
}

}  // namespace

Status allow_cold_start(Problem& problem, const ProblemFlags& flags) {
  const char* cold_only = flags.host_access         ? "--host-access"
                          : flags.drop_parameters   ? "--drop-parameters"
                          : !flags.resident.empty() ? "--resident"
                                                    : nullptr;
  if (cold_only != nullptr && problem.objective != Objective::kColdLatency) {
    return Error(Code::kInvalidInput,
                 std::string(cold_only) + ": parameters are loaded under --objective cold-latency only");
  }
  if (flags.fixed_sharing && problem.objective == Objective::kThroughput) {
    return Error(Code::kInvalidInput,
                 "--fixed-sharing: its factors are for latencies; leave it out for the objective throughput");
  }
  problem.execution.fixed_sharing = flags.fixed_sharing;
  problem.execution.parameter_drops = flags.drop_parameters;
  if (flags.host_access) problem.costs = with_host_access(problem);
  if (!flags.resident.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(problem.resident, residents(problem, flags.resident));
  }
  return validate(problem);
}

}  // namespace heddle::cli
