// Shared by the verbs that plan: flags for a model, its problem and the search, and the printing of values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/command/command.h"
#include "heddle/session/robust.h"
#include "heddle/session/session.h"

namespace heddle::cli {

// Headings of --help.
inline constexpr const char* kModelFlags = "Model";
inline constexpr const char* kPlanningFlags = "Planning";
inline constexpr const char* kColdFlags = "Cold start";

// "NAME=1,3,224,224" texts of --shape.
Result<std::map<std::string, Shape>> parse_shapes(const std::vector<std::string>& texts);
// "NAME=2,3" texts of --value.
Result<std::map<std::string, std::vector<double>>> parse_values(const std::vector<std::string>& texts);

// --engines and --precision.
void declare_variants(Command& command, std::string& engines, std::string& precision);
void declare_budget(Command& command, std::string& budget);
// The values of these.
Result<VariantSettings> variant_settings(const std::string& engines, const std::string& precision,
                                         const std::string& budget);

// --calibration and --decisions: how the error of narrower types is measured.
struct CalibrationFlags {
  std::string folder;
  std::vector<std::string> decisions;
  void declare(Command& command);
  Status settings(CalibrationOptions& options, DecisionRules& rules) const;
};

struct ModelFlags {
  ModelSpec spec;  // without shapes and values
  std::vector<std::string> shapes, values;
  void declare(Command& command);
  Result<ModelSpec> source() const;
};

struct ProblemFlags {
  ProblemSettings plain;  // of the flags whose value is the setting
  std::string cluster = "preset:local";
  std::string objective = "latency";
  std::string engines;    // "openvino,onnxruntime"; empty: the usual ones
  std::string precision;  // "f32,bf16" or "budget"; empty: auto
  std::string budget;     // "decisions=0.999,mean=0.001"; empty: the usual one
  CalibrationFlags calibration;
  std::string devices;      // "cpu0,cpu1"; empty: all; simulation instances: their number
  std::string coarsen;      // light, none, gcof or gcof:FILE; empty: light, none for graphs with times
  std::string transfer;     // simulation instances: source or reader; empty: source
  std::string stage_model;  // measured, simulated or serial; empty: measured where that is possible
  std::string resident;     // cold: a fraction of the parameters, or a file; empty: none
  void declare(Command& command);
  // Checks what can be checked without a model, and opens the cluster.
  Result<ProblemSettings> settings() const;
};

// What verbs that plan have in common.
struct PlanningFlags {
  ModelFlags model;
  ProblemFlags problem;
  SearchSettings search;
  void declare(Command& command);
  Result<Session> open(const Invocation& invocation) const;
};

// --robust: a plan for the loss of part of a device's speed.
struct RobustFlag {
  double share = 0;                   // 0: not given
  std::optional<RobustPlan> planned;  // after plan(), if it was given
  void declare(Command& command);
  // make_robust_plan() with the share, else make_plan().
  Result<PlanResult> plan(Session& session, const std::string& planner, const SearchSettings& search,
                          const Control& control);
};

// From flags to a session.
Result<Session> open_session(const ModelFlags& model, const ProblemFlags& problem,
                             const Invocation& invocation);

// Writes what the import assumed to stderr, except with --quiet.
void show_notes(const LoadedModel& loaded, const Invocation& invocation);

// Fails if no planner has that name. Called before long work.
Status check_planner(const std::string& name);
// Invalid input if the file, which should be a model or plan, is for another verb; the message names that. What
// cannot be read is left to the reader.
Status check_is_no_fleet(const std::string& path);
Status check_is_no_cluster(const std::string& path);
// The same if the file should be a plan or run.
Status check_is_plan(const std::string& path);

}  // namespace heddle::cli
