#include "cold_child.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>
#include <type_traits>

#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/segment_cache.h"

namespace heddle {

// Found by the JSON library.
void to_json(Json& json, const ColdSegment& s) {
  json = {s.loading.begin_us, s.loading.load_us, s.loading.compile_us, s.loading.cached, s.start_us,
          s.finish_us,        s.wait_us};
}

void from_json(const Json& json, ColdSegment& s) {
  s.loading = {.begin_us = json[0], .load_us = json[1], .compile_us = json[2], .cached = json[3]};
  s.start_us = json[4];
  s.finish_us = json[5];
  s.wait_us = json[6];
}

namespace {

template <class Run, class Visit>
void each_member(Run& run, const Visit& visit) {
  visit("first_output_us", run.first_output_us);
  visit("cpu_s", run.cpu_s);
  visit("import_us", run.import_us);
  visit("prepare_us", run.prepare_us);
  visit("request_us", run.request_us);
  visit("requests", run.requests);
  visit("peak", run.peak_resident_bytes);
  visit("verified", run.verified);
  visit("equal", run.outputs_equal);
  visit("max_abs", run.max_abs_error);
  visit("max_rel", run.max_rel_error);
}

}  // namespace

ColdRunOptions start_options(const ColdSettings& settings, const Control& control) {
  ColdRunOptions options;
  options.load_workers = settings.load_workers;
  options.budget_bytes = settings.budget_bytes;
  options.requests = settings.requests;
  options.inputs = settings.inputs;
  options.rtol = settings.rtol;
  options.atol = settings.atol;
  options.verify = false;
  options.deadline = control.deadline();
  return options;
}

ColdRunOptions without_overlap(ColdRunOptions options) {
  options.overlap = false;
  options.load_workers = 1;
  options.requests = 1;
  return options;
}

ColdMachine machine_of(const ColdSettings& settings) {
  return {.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
          .load_workers = settings.load_workers,
          .budget_bytes = settings.budget_bytes};
}

Error cold_start_failed(const std::string& what, const Error& why) {
  if (why.code() == Code::kCancelled) return why;
  return infeasible(what + " failed: " + why.to_string());
}

Result<ColdRun> cold_start_in_child(const std::string& plan_path, const ColdRunOptions& options,
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
    HEDDLE_ASSIGN_OR_RETURN(ColdRun run, run_cold(file.problem, file.plan, own));
    run.first_output_us += plan_us;
    run.prepare_us += plan_us;
    Json result;
    each_member(run, [&](const char* name, const auto& member) { result[name] = member; });
    if (run.precision) result["precision"] = precision_error_json(*run.precision);
    return result;
  });
  if (!json.ok()) return cold_start_failed("the cold start", json.error());
  ColdRun run;
  each_member(run, [&]<class T>(const char* name, T& member) {
    const Json& value = (*json)[name];
    // JSON has no infinity.
    if constexpr (std::is_same_v<T, double>)
      member = value.is_number() ? value.get<double>() : kImpossible;
    else
      member = value.get<T>();
  });
  if (json->contains("precision")) {
    HEDDLE_ASSIGN_OR_RETURN(run.precision,
                            precision_error_from_json(JsonCursor((*json)["precision"], "precision")));
  }
  return run;
}

void leave_out_hwloc_plugins() {
  // Not a folder, so none is found.
  setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
}

void prepare_memory_for_start([[maybe_unused]] int load_workers, [[maybe_unused]] bool keep) {
#ifdef __GLIBC__
  // Only address space: pages come when they are touched.
  mallopt(M_TOP_PAD, 16 << 20);
  if (keep) {
    // Not even large pieces are given back: the next segment needs as much.
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
  }
  // One for each load worker and its compiler's threads, and for the threads that import and execute.
  mallopt(M_ARENA_MAX, 2 + 2 * load_workers);
#endif
}

}  // namespace heddle
