// Explains a plan: the work and the bottleneck of each device, the critical path, the bound, and helpful
// changes of the hardware.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/plan/robustness.h"
#include "heddle/report/single_device.h"
#include "heddle/report/text_table.h"

namespace heddle {

struct DeviceExplanation {
  std::string device;
  bool used = false;
  bool requested = false;        // the user named it (Problem::devices is not empty)
  bool runs_as_variant = false;  // another engine or precision of the same hardware is used
  double busy_share = 0;         // of the makespan (latencies) or period (throughput)
  int segments = 0;
  int64_t param_bytes = 0;
  std::string reason;  // its bottleneck, or why it is unused (with figures)

  // The user asked for hardware that nothing runs on.
  bool is_left_out() const { return requested && !used && !runs_as_variant; }
};

struct CriticalStep {
  std::string what;  // "run conv1+relu on gpu0", "send x gpu0 -> gpu1"
  double us = 0;
  double share = 0;  // of the makespan
};

struct Suggestion {
  std::string change;   // "gpu0 twice as fast", "link nvlink0 twice as fast"
  double value_us = 0;  // predicted objective under that change
  double gain = 0;      // (old - new) / old
};

// A segment on a device that has several engines or precisions, and its time with each.
struct VariantChoice {
  struct Time {
    std::string device;
    std::string variant;  // "onnxruntime bf16"
    double us = 0;        // infinite if the variant cannot run the segment
    bool measured = false;
    bool chosen = false;
  };
  std::string segment;
  std::vector<Time> times;  // in the cluster's order
};

// The resource that limits throughput if the bottleneck is taken away.
struct NextBottleneck {
  std::string bottleneck, next;
  double limit_us =
      0;  // per request: the plan's value if the bottleneck took no time, a link its latency alone
};

struct Explanation {
  Objective objective = Objective::kLatency;
  int batch = 1;
  double value_us = 0;
  Bound bound;
  double gap = 0;
  std::optional<SingleDevice> single;  // the best one
  std::vector<DeviceExplanation> devices;
  std::vector<VariantChoice> variants;            // in the order of segments
  std::optional<NextBottleneck> next_bottleneck;  // for throughput, if a device or link limits it
  std::vector<CriticalStep> critical_path;        // consecutive steps of one device are merged
  double compute_share = 0, transfer_share = 0, load_share = 0;  // of the critical path
  std::vector<Suggestion> suggestions;  // best first; each from re-evaluating the plan under the change
  std::optional<Robustness> robustness;
  std::string precision_text;                // int8 of quantised models; with a budget: what it decided
  std::optional<TextTable> precision_units;  // with a budget: the units that it keeps in wider types
  std::shared_ptr<const Json> precision;
  std::vector<std::string> warnings;  // a requested device that gets nothing, estimated costs, ...
};

// O(suggestions * evaluation).
Explanation explain(const Problem& problem, const Plan& plan, const Timeline& timeline, const Bound& bound);
// The objective's value for people: "719 us", for throughput "2,064 req/s".
std::string objective_text(Objective objective, int batch, double us);
Json robustness_json(const Robustness& robustness);
// problem.precision, which must not be null, with the names of units.
Json precision_choice_json(const Problem& problem);
// Sentences have at most 100 columns, tables at most table_width().
std::string explanation_text(const Explanation& explanation);
Json explanation_json(const Explanation& explanation);

}  // namespace heddle
