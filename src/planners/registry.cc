// Every planner, in the order in which they are listed.
#include "planners.h"

namespace heddle {
namespace {

const std::vector<Objective> kLatencies = {Objective::kLatency, Objective::kColdLatency};
const std::vector<Objective> kAll = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput};

std::vector<PlannerEntry> make_registry() {
  return {
      {{"auto", "runs what fits in the time and keeps the best", "Heddle", kAll,
        "everything that the planners below exploit; which of overlapping core sets to use", "", true},
       make_auto},
      {{"single", "the best single device",
        "DiviML, section V-B (best device); SortingHat, section 6 (single device)", kAll,
        "measured whole-model segments", "all devices but one", true},
       make_single_device},
      {{"round-robin", "op i to device i modulo their number", "folklore", kAll, "", "all costs", true},
       make_round_robin},
      {{"met", "each op on its fastest device", "DiviML, section V-B", kAll, "unequal devices",
        "transfers, load of devices", true},
       make_met},
      {{"greedy", "each op where it finishes first, in topological order", "DiviML, section V-B", kAll,
        "unequal devices, transfer times", "contention, what is to come", true},
       make_greedy},
      {{"critical-path", "the critical path on one device, the rest where it finishes first (CPOP)",
        "Topcuoglu et al. 2002, section 4.2; SortingHat, section 6 (critical path)", kLatencies,
        "unequal devices, transfer times, gaps", "contention", true},
       make_critical_path},
      {{"heft", "upward ranks, earliest finish with insertion", "Topcuoglu et al. 2002; DiviML, section V-B",
        kAll, "unequal devices, transfer times, gaps, parameter loads", "contention, what is to come", true},
       make_heft},
      {{"lookahead", "earliest finish plus optimistic rest (PEFT)", "Arabnejad and Barbosa 2014", kLatencies,
        "unequal devices, transfer times, gaps, the future of each choice", "contention", true},
       make_lookahead},
      {{"pipeline",
        "contiguous parts with the least maximal load, by dynamic programming",
        "DiviML, section IV; EfficientMIP (contiguous)",
        {Objective::kThroughput},
        "unequal devices, cut sizes",
        "non-contiguous placements",
        true},
       make_pipeline},
      {{"replicate",
        "the whole model on several devices, requests shared out by speed",
        "DiviML, section IV (data parallelism)",
        {Objective::kThroughput},
        "measured whole-model segments, unequal devices",
        "placements that split the model",
        true},
       make_replicate},
      {{"local-search", "improves a plan until the deadline: moves and reorderings, late acceptance",
        "Heddle; Burke and Bykov 2017 (late acceptance)", kAll,
        "the exact evaluation: contention, loads, memory", "segments of several ops", true},
       make_local_search},
  };
}

}  // namespace

std::span<const PlannerEntry> planner_registry() {
  static const auto entries = make_registry();
  return entries;
}

const PlannerEntry* find_planner(std::string_view name) {
  for (const auto& entry : planner_registry()) {
    if (entry.info.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace heddle
