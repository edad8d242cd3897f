// heddle run --cold: its flags and what it prints.
#pragma once

#include "cold_report.h"
#include "command.h"
#include "workbench.h"

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

// The number of load workers where it is not given.
int usual_load_workers();

// A file for a plan that is removed with it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace heddle::cli
