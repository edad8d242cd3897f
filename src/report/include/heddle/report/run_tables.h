// A run's times beside the predicted ones: tables for people and JSON for machines.
#pragma once

#include <optional>
#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/plan_file.h"
#include "heddle/runtime/recheck.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/run_record.h"

namespace heddle {

// `timeline` is the plan's prediction.
std::string run_text(const PlanFile& file, const Timeline& timeline, const RunRecord& run);
Json run_json(const PlanFile& file, const Timeline& timeline, const RunRecord& run);

// What the narrower types of a plan cost, on lines of their own; nothing for plans in float32.
std::string precision_text(const std::optional<PrecisionError>& error);
// "99.98 % of 1024": decisions that are the same; "-" without decisions.
std::string agreement_text(const OutputError& error);

std::string recheck_text(const Recheck& recheck);
Json recheck_json(const Recheck& recheck);

// Whether the measured time is further from the predicted one than predictions from a profile usually are.
bool is_off(const RunRecord& run);
// For such runs, from timing the segments again: whether the machine or the prediction is the cause.
std::string off_because_text(const Recheck& recheck);
Json off_because_json(const Recheck& recheck);

std::string comparison_text(const Comparison& comparison, Objective objective);
Json comparison_json(const Comparison& comparison);

}  // namespace heddle
