// Run files: a plan and the record of its run, as versioned JSON (docs/plan-format.md).
#pragma once

#include <optional>
#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/run_record.h"

namespace heddle {

inline constexpr int kRunJsonVersion = 1;

struct RunFile {
  PlanFile plan;
  RunRecord run;
};

Json run_record_to_json(const RunRecord& run);
Result<RunRecord> run_record_from_json(const JsonCursor& cursor);

bool is_run_json(const Json& json);  // by its "format" member; false for a plan file
Json run_to_json(const RunFile& file);
// Strict; the number of measured steps must equal the plan's.
Result<RunFile> run_from_json(const JsonCursor& cursor);

struct PlanOrRun {
  PlanFile plan;
  std::optional<RunRecord> run;
};
// Errors name the file.
Result<PlanOrRun> read_plan_or_run(const std::string& path);
// The drawing that the ending of `path` names: .html, .svg or .json, a trace.
Result<std::string> drawing(const PlanOrRun& loaded, const std::string& path);
Status write_run_file(const std::string& path, const RunFile& file);

}  // namespace heddle
