#include "heddle/session/rank_plan.h"

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/runtime/rank_run.h"
#include "heddle/session/loaded_model.h"

namespace heddle {

Error failed_on_ranks(const Error& error) {
  const bool cancelled = error.code() == Code::kCancelled;
  return Error(cancelled ? Code::kCancelled : Code::kVerificationFailed, error.to_string());
}

Result<RankPlan> share_plan(RankGroup& group, Result<RankPlan> own, const std::string& name,
                            const std::string& placement) {
  HEDDLE_RETURN_IF_ERROR(group.agree(own.ok() ? Status() : Status(own.error())));
  RankPlan shared = std::move(own).value();
  const bool first = group.rank() == 0;
  HEDDLE_ASSIGN_OR_RETURN(const auto text,
                          group.broadcast(first ? json_text(plan_to_json(shared.file)) : ""));
  HEDDLE_ASSIGN_OR_RETURN(const auto hosts, group.exchange(group.transport().host_name()));
  Status read;
  if (!first) {
    const auto json = parse_json(text);
    auto file = json.ok() ? plan_from_json(JsonCursor(*json)) : Result<PlanFile>(json.error());
    if (file.ok())
      shared.file = std::move(file).value();
    else
      read = std::move(file).error();
  }
  HEDDLE_RETURN_IF_ERROR(group.agree(read));
  const Problem& problem = shared.file.problem;
  HEDDLE_ASSIGN_OR_RETURN(shared.rank_of_device, place_on_ranks(*problem.cluster, hosts, placement));
  const auto& segments = shared.file.plan.segments;
  const bool computes = std::any_of(segments.begin(), segments.end(), [&](const Segment& s) {
    return shared.rank_of_device[s.device.index()] == group.rank() &&
           problem.cluster->device(s.device).backend != "emulated";
  });
  if (!first && computes) {
    auto model = load_model_of(problem, name);
    if (model.ok())
      shared.model = std::move(model).value();
    else
      read = std::move(model).error();
  }
  const Status all_read = group.agree(read);
  if (!all_read.ok()) return failed_on_ranks(all_read.error());
  return shared;
}

}  // namespace heddle
