// The one list of planners: `heddle planners`, docs/planners.md and the tests are made from it.
#include <vector>

#include "factories.h"

namespace heddle {
namespace {

using enum Objective;

std::vector<PlannerEntry> make_registry() {
  const std::vector<Objective> all{kLatency, kColdLatency, kThroughput}, latencies{kLatency, kColdLatency};
  return {
      {{.name = "auto",
        .description = "runs what fits in the time and keeps the best plan",
        .source = "the planners below",
        .objectives = all,
        .exploits = "everything that the others do; sets of devices that share cores",
        .ignores = "explicit routes"},
       make_auto},
      {{.name = "single",
        .description = "the whole model on the best single device",
        .source = "baseline of all five papers",
        .objectives = all,
        .exploits = "known time of the whole model as one segment",
        .ignores = "all other devices"},
       make_single},
      {{.name = "round-robin",
        .description = "ops dealt to the devices in turn",
        .source = "baseline",
        .objectives = all,
        .exploits = "memory limits",
        .ignores = "times, transfers, loads"},
       make_round_robin},
      {{.name = "met",
        .description = "each op on the device that runs it fastest",
        .source = "DiviML, section V-B (MET)",
        .objectives = all,
        .exploits = "unequal devices, memory limits",
        .ignores = "transfers, loads, how busy a device is"},
       make_met},
      {{.name = "greedy",
        .description = "each op where it ends first; throughput: where the largest load grows least",
        .source = "DiviML, section V-B (Greedy)",
        .objectives = all,
        .exploits = "unequal devices, transfers with contention, parameter loads, memory limits",
        .ignores = "what comes after; gaps between ops"},
       make_greedy},
      {{.name = "critical-path",
        .description = "the critical path on one device, the rest around it",
        .source = "SortingHat, section 6; CPOP in Topcuoglu et al., TPDS 2002, section 4.2",
        .objectives = latencies,
        .exploits = "unequal devices, transfers, parameter loads, memory limits",
        .ignores = "contention"},
       make_critical_path},
      {{.name = "heft",
        .description = "heterogeneous earliest finish time with insertion",
        .source = "Topcuoglu et al., TPDS 2002, section 4.1",
        .objectives = latencies,
        .exploits = "unequal devices, transfers, parameter loads, memory limits",
        .ignores = "contention"},
       make_heft},
      {{.name = "heft-links",
        .description = "HEFT whose transfers wait for links, buses and copy engines",
        .source = "Topcuoglu et al., TPDS 2002, section 4.1",
        .objectives = latencies,
        .exploits = "unequal devices, transfers with contention, parameter loads, memory limits",
        .ignores = "that a later decision may delay an earlier transfer"},
       make_heft_links},
      {{.name = "lookahead",
        .description = "list scheduling with an optimistic cost table (PEFT)",
        .source = "Arabnejad and Barbosa, TPDS 2014",
        .objectives = latencies,
        .exploits = "unequal devices, transfers, parameter loads, memory limits",
        .ignores = "contention"},
       make_lookahead},
      {{.name = "pipeline",
        .description = "contiguous intervals of the model, one a device, with the least largest load",
        .source = "Tarnawski et al., NeurIPS 2020; PipeDream, SOSP 2019, section 3.1",
        .objectives = {kThroughput},
        .exploits = "unequal devices, transfers between neighbours, memory limits",
        .ignores = "links that several pairs of devices share, known segments"},
       make_pipeline},
      {{.name = "replicate",
        .description = "lanes on disjoint groups of devices, each serving a share of the requests",
        .source = "DiviML, section IV; PPipe, section 5",
        .objectives = {kThroughput},
        .exploits = "known time of the whole model, unequal devices, memory limits",
        .ignores = "links that lanes share, while it chooses"},
       make_replicate},
      {{.name = "local-search",
        .description = "improves a plan by simulated annealing until the deadline",
        .source = "Kirkpatrick et al. 1983; van Laarhoven et al., Operations Research 1992",
        .objectives = all,
        .exploits = "the whole execution model",
        .ignores = "known segments of several ops, explicit routes"},
       make_local_search},
      {{.name = "moirai",
        .description =
            "mixed-integer program of placement, order and transfers, from the best constructive plan",
        .source = "Moirai, section III-D, equations 4 to 8",
        .objectives = {kLatency},
        .exploits = "unequal devices, transfers, copy engines, memory limits",
        .ignores = "links that several pairs of devices share; ops of large graphs are grouped into units"},
       make_moirai},
      {{.name = "m-sct",
        .description = "earliest time first, devices waiting for favourite children",
        .source = "Baechi (Jeon et al., SoCC 2020), sections 3.2 and 4; Moirai's baseline",
        .objectives = latencies,
        .exploits = "transfers, memory limits",
        .ignores = "contention; how much slower a device is that is free first"},
       make_m_sct},
      {{.name = "getf",
        .description = "earliest time first within groups of devices of similar speed",
        .source = "Su et al., arXiv:2004.14639, section 3; Moirai's baseline",
        .objectives = latencies,
        .exploits = "unequal devices, transfers, memory limits",
        .ignores = "contention"},
       make_getf},
      {{.name = "placeto",
        .description = "a small message-passing network, trained on the evaluator until the deadline",
        .source = "Placeto (Addanki et al., NeurIPS 2019), sections 3 and 4; Moirai's baseline",
        .objectives = latencies,
        .exploits =
            "unequal devices, transfers with contention, parameter loads, memory limits, as it learns them",
        .ignores = "order: ops run by rank"},
       make_placeto},
  };
}

}  // namespace

std::span<const PlannerEntry> planner_registry() {
  static const std::vector<PlannerEntry> registry = make_registry();
  return registry;
}

const PlannerEntry* find_planner(std::string_view name) {
  for (const PlannerEntry& entry : planner_registry()) {
    if (entry.info.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace heddle
