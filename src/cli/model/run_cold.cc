#include "run_cold.h"

#include "heddle/base/json.h"
#include "heddle/base/temporary_file.h"
#include "heddle/base/units.h"
#include "heddle/report/cold_text.h"
#include "heddle/runtime/segment_cache.h"

namespace heddle::cli {
namespace {

constexpr int64_t kUsualCacheBytes = int64_t{4} << 30;
constexpr int kRequestsWithBudget = 3;

}  // namespace

void ColdFlags::declare(Command& command) {
  command.flag("--cold", cold,
               "start cold: load workers compile the segments while earlier ones run (docs/cold-run.md)");
  command.option(
      "--segments", segments,
      "--cold, for a MODEL: cut it into N by weight (default: where starts that are tried first say)", 1,
      100'000);
  command.option("--load-workers", load_workers,
                 "--cold: segments loaded at once (default: one a core, at most 4)", 1, 64);
  command.bytes("--budget-bytes", budget_bytes,
                "--cold: most bytes of parameters in compiled segments; each request loads the other "
                "segments again",
                1, INT64_MAX);
  command.option("--requests", requests,
                 "--cold: requests of each start, one after the other (default 1, with a budget 3)", 1,
                 10'000);
  command.flag("--cache", cache, "--cold: keep compiled segments in the user's cache folder");
  command.bytes("--cache-bytes", cache_bytes, "--cache: most bytes of all files there (default 4GiB)", 1,
                INT64_MAX);
}

Status ColdFlags::check() const {
  if (cold) {
    if (cache_bytes && !cache) return invalid_input("--cache-bytes needs --cache");
    if (budget_bytes && requests && *requests < 2)
      return invalid_input(
          "--budget-bytes limits what stays in memory between requests, so it needs --requests 2 "
          "or more");
    return {};
  }
  if (const char* flag = first_given({{"--segments", segments.has_value()},
                                      {"--load-workers", load_workers.has_value()},
                                      {"--budget-bytes", budget_bytes.has_value()},
                                      {"--requests", requests.has_value()},
                                      {"--cache", cache},
                                      {"--cache-bytes", cache_bytes.has_value()}}))
    return invalid_input(std::string(flag) + " needs --cold");
  return {};
}

Result<int> run_cold_verb(const ColdFlags& flags, ColdJob job, const Invocation& invocation) {
  ColdSettings& s = job.settings;
  s.load_workers = flags.load_workers.value_or(usual_load_workers());
  s.budget_bytes = flags.budget_bytes.value_or(0);
  s.requests = flags.requests.value_or(s.budget_bytes > 0 ? kRequestsWithBudget : 1);
  if (flags.cache) s.cache_folder = SegmentCache::default_folder();
  s.cache_bytes = flags.cache_bytes.value_or(kUsualCacheBytes);
  if (job.is_plan && flags.segments)
    return invalid_input("--segments cuts a MODEL; this plan has its segments");
  const TemporaryFile temporary("cold.json");
  std::string path = job.is_plan ? job.model.spec.path : temporary.path();
  ColdCutOutcome outcome;
  if (!job.is_plan) {
    if (!job.plan_output.empty()) path = job.plan_output;
    HEDDLE_ASSIGN_OR_RETURN(const auto source, job.model.source());
    HEDDLE_ASSIGN_OR_RETURN(const auto problem, job.problem.settings());
    HEDDLE_ASSIGN_OR_RETURN(outcome,
                            plan_cold(source, problem, flags.segments.value_or(0), s, path, invocation));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto report, measure_cold(path, s, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const PlanFile file, read_plan_file(path));
  if (invocation.json) {
    Json json = cold_json(file, report, s, cold_bound_us(outcome, report));
    if (outcome.split_bytes > 0) json["split_bytes"] = outcome.split_bytes;
    show_json(invocation, json);
  } else {
    if (invocation.progress) invocation.progress->finish();
    print("{}", cold_text(file, report, s, cold_bound_us(outcome, report)));
    if (outcome.split_bytes > 0) {
      print("products with constants of more than {} are split (--split-weights {})\n",
            format_bytes(outcome.split_bytes), outcome.split_bytes);
    }
    if (!job.plan_output.empty()) print("written to {}\n", job.plan_output);
  }
  return report.checked.wrong() ? kExitNo : kExitDone;
}

}  // namespace heddle::cli
