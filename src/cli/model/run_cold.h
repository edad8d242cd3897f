// heddle run --cold: its flags and what it prints.
#pragma once

#include "command.h"
#include "heddle/session/cold_start.h"
#include "model_flags.h"

namespace heddle::cli {

struct ColdFlags {
  bool cold = false, cache = false;
  std::optional<int64_t> segments, load_workers, budget_bytes, requests, cache_bytes;
  void declare(Command& command);
  // Flags that mean nothing without --cold are refused.
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
