// heddle run --cold: its flags and its output.
#pragma once

#include "heddle/command/command.h"
#include "heddle/session/cold_start.h"
#include "model_flags.h"

namespace heddle::cli {

struct ColdFlags {
  bool cold = false, cache = false;
  std::optional<int> segments, load_workers, requests;
  std::optional<int64_t> budget_bytes, cache_bytes;
  void declare(Command& command);
  // Fails if a flag is given that needs --cold.
  Status check() const;
};

struct ColdJob {
  ModelFlags model;
  ProblemFlags problem;
  bool is_plan = false;  // the model is a plan file
  std::string plan_output;
  ColdSettings settings;
};

Result<int> run_cold_verb(const ColdFlags& flags, ColdJob job, const Invocation& invocation);

}  // namespace heddle::cli
