// Verbs that run as several processes, which mpirun or a similar launcher starts.
#pragma once

#include "heddle/command/command.h"
#include "heddle/runtime/rank_group.h"

namespace heddle {

// Runs `run` on every rank, unless `checked` is an error on one. Call it on all ranks. Rank 0 prints the error
// before any rank can end: launchers stop all processes when one ends with an error. So `run` has to return an error
// on all ranks or on rank 0 alone. kUnsupported if Heddle was built without MPI.
Result<int> run_verb_on_ranks(const Invocation& invocation, const Status& checked,
                              const std::function<Result<int>(RankGroup&)>& run);

}  // namespace heddle
