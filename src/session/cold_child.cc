#include "cold_child.h"

#include <memory>

#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/segment_cache.h"
#include "start_process.h"

namespace heddle {
namespace {

Json start_json(const ColdRun& run, double plan_us) {
  Json requests = Json::array();
  for (const auto& segments : run.requests) {
    Json rows = Json::array();
    for (const auto& s : segments) {
      rows.push_back({s.loading.begin_us, s.loading.load_us, s.loading.compile_us, s.wait_us,
                      s.finish_us - s.start_us, s.loading.cached});
    }
    requests.push_back(std::move(rows));
  }
  return {{"first_output_us", run.first_output_us + plan_us},
          {"cpu_s", run.cpu_s},
          {"import_us", run.import_us},
          {"prepare_us", run.prepare_us},
          {"plan_us", plan_us},
          {"request_us", run.request_us},
          {"requests", std::move(requests)},
          {"peak", run.peak_resident_bytes},
          {"verified", run.verified},
          {"equal", run.outputs_equal},
          {"max_abs", run.max_abs_error},
          {"max_rel", run.max_rel_error}};
}

ColdStart start_from(const Json& json) {
  ColdStart start;
  start.first_output_us = json["first_output_us"];
  start.cpu_s = json["cpu_s"];
  start.import_us = json["import_us"];
  start.prepare_us = json["prepare_us"];
  start.plan_us = json["plan_us"];
  start.request_us = json["request_us"].get<std::vector<double>>();
  for (const Json& rows : json["requests"]) {
    std::vector<bool> reloaded;
    const bool first = start.reloaded.empty();
    for (const Json& row : rows) {
      reloaded.push_back(row[0].get<double>() >= 0);
      if (first) start.segments.push_back({row[1], row[2], row[3], row[4], row[5].get<bool>()});
    }
    start.reloaded.push_back(std::move(reloaded));
  }
  start.peak_resident_bytes = json["peak"];
  start.verified = json["verified"];
  start.outputs_equal = json["equal"];
  // What is not a number has no place in JSON.
  start.max_abs_error = json["max_abs"].is_number() ? json["max_abs"].get<double>() : kImpossible;
  start.max_rel_error = json["max_rel"].is_number() ? json["max_rel"].get<double>() : kImpossible;
  return start;
}

}  // namespace

Error cold_start_failed(const std::string& what, const Error& why) {
  if (why.code() == Code::kCancelled) return why;
  return Error(Code::kInfeasible, what + " failed: " + why.to_string());
}

Result<ColdStart> cold_start_in_child(const std::string& plan_path, const ColdRunOptions& options,
                                      const std::string& cache_folder, int64_t cache_bytes) {
  const auto json = run_in_child([&]() -> Result<Json> {
    leave_out_hwloc_plugins();
    prepare_memory_for_start(options.load_workers, options.budget_bytes == 0);
    const Stopwatch watch;
    HEDDLE_ASSIGN_OR_RETURN(const PlanFile file, read_plan_file(plan_path));
    const double plan_us = watch.seconds() * 1e6;
    ColdRunOptions own = options;
    std::unique_ptr<SegmentCache> cache;
    if (!cache_folder.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(cache, SegmentCache::open(cache_folder, cache_bytes));
      own.cache = cache.get();
    }
    HEDDLE_ASSIGN_OR_RETURN(const ColdRun run, run_cold(file.problem, file.plan, own));
    return start_json(run, plan_us);
  });
  if (!json.ok()) return cold_start_failed("the cold start", json.error());
  return start_from(*json);
}

}  // namespace heddle
