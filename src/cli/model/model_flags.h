// What the verbs that plan share: flags for a model, its problem and the search, and how values are printed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/session/session.h"

namespace heddle::cli {

struct ModelFlags {
  std::string model;
  std::vector<std::string> shapes;  // "NAME=1,3,224,224"
  std::optional<int64_t> batch;
  int64_t split_bytes = 0;
  void declare(Command& command);
  Result<ModelSpec> source() const;
};

struct ProblemFlags {
  std::string cluster = "preset:local";
  std::string objective = "latency";
  std::string devices;           // "cpu0,cpu1"; empty: all; simulation instances: their number
  int64_t units = 0;             // at most so many units to place; 0: choose
  std::string coarsen;           // light, none, gcof or gcof:FILE; empty: light, none for graphs with times
  std::string store;             // profile store's file; empty: default
  bool no_profile = false;       // never measure, use what is in the store or estimates
  bool no_contention = false;    // transfers never wait for each other
  std::string transfer;          // simulation instances: source or reader; empty: source
  int64_t stages = 1;            // most segments at once on one device
  std::string stage_model;       // measured, simulated or serial; empty: measured where that is possible
  bool host_access = false;      // cold: segments may read their parameters in host memory
  bool fixed_sharing = false;    // fixed factors for shared links in place of waiting
  bool drop_parameters = false;  // cold: parameters may leave after their last use
  std::string resident;          // cold: a fraction of the parameters, or a file; empty: none
  bool contiguous = false;       // placement workloads, throughput: devices follow one another
  int64_t pieces = 1;            // placement workloads, latency: most segments on an accelerator
  void declare(Command& command);
  // Checks what can be checked without a model, and opens the cluster.
  Result<ProblemSettings> settings() const;
};

struct SearchFlags {
  double time_limit_s = 10;
  int64_t seed = 1;
  int64_t threads = 1;
  int64_t q = 6, ndom = 1;  // sortinghat and its like
  void declare(Command& command);
  SearchSettings settings() const;
  PlannerOptions options(const Invocation& invocation) const;
};

// From flags to a session.
Result<Session> open_session(const ModelFlags& model, const ProblemFlags& problem,
                             const Invocation& invocation);

// Is there a planner of that name? Asked before long work.
Status check_planner(const std::string& name);

// How many of the cost table's entries have which origin, over usable devices.
std::map<std::string, int> cost_origins(const Problem& problem);

// "12.3 ms" or "81.2 /s", by objective.
std::string value_text(const Problem& problem, double us);
// Fills value_us (latencies) or value_per_s (throughput) and bound in the same unit.
void put_value(Json& row, const Problem& problem, double value_us, double bound_us);

}  // namespace heddle::cli
