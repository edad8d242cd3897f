#include "heddle/command/rank_verb.h"

#include <cstdio>

#include "error_report.h"

namespace heddle {

Result<int> run_verb_on_ranks(const Invocation& invocation, const Status& checked,
                              const std::function<Result<int>(RankGroup&)>& run) {
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  const Status agreed = group.agree(checked);
  Result<int> status = agreed.ok() ? run(group) : Result<int>(agreed.error());
  if (status.ok()) return status;
  if (invocation.progress != nullptr) invocation.progress->finish();
  const int exit = report_error(status.error(), invocation.json);
  std::fflush(stdout);
  return exit;  // the transport's end waits for all ranks
}

}  // namespace heddle
