// Clusters: from files and presets, of this machine with measured links, of all ranks' machines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/copy_profile.h"
#include "heddle/runtime/rank_group.h"
#include "heddle/runtime/rank_links.h"

namespace heddle {

// load_cluster(). For preset:local also the devices beside the CPU that OpenVINO and libtorch find.
Result<std::shared_ptr<const Cluster>> open_cluster(const std::string& file_or_preset);

// How much of the outputs narrower types may change, against float32 on calibration inputs.
struct ErrorBudget {
  double agreement = 0.999;  // least share of equal decisions (heddle/runtime/output_error.h)
  double mean = 1e-3;        // largest mean error of an output, as a part of its range
  bool allows(double share_of_equal, double mean_error) const {
    return share_of_equal >= agreement && mean_error <= mean;
  }
};

// Engines and precisions of a problem's devices, by name.
struct VariantSettings {
  // Empty: the engine of each device in the cluster.
  std::vector<std::string> engines;
  // "f32", "bf16", ..., or "auto": what the engine takes by itself. Empty: auto, or with a budget all that the
  // engine has.
  std::vector<std::string> precisions;
  // Plans choose the precision of each segment so that their outputs keep to it.
  std::optional<ErrorBudget> budget;
  bool any() const { return !engines.empty() || !precisions.empty() || budget.has_value(); }
};
// The cluster with a variant for each engine and precision on each device of this machine that `only` names
// (empty: all). Absent devices of the catalogue get the rate of the one precision that is given. Devices whose variants
// or precision the cluster file states keep theirs. Invalid input if a device lacks a precision with all of its
// engines.
Result<std::shared_ptr<const Cluster>> choose_variants(std::shared_ptr<const Cluster> cluster,
                                                       const VariantSettings& settings,
                                                       const std::vector<std::string>& only = {});

// An engine on a device of this machine, with the precisions that it has there; the first is its own choice.
struct DeviceEngine {
  DeviceId device;
  std::string engine;
  std::vector<Precision> precisions;
};
// In the order of devices, without their variants. Fails if an engine cannot tell.
Result<std::vector<DeviceEngine>> engines_of(const Cluster& cluster);

struct MeasuredCluster {
  CopyProfile copies;
  std::shared_ptr<const Cluster> cluster;  // with links and buses as measured
};
// Measures the copies of the cluster's accelerators. Unsupported if none of its accelerators is on this
// machine. Cancellation is an error, and nothing is kept.
Result<MeasuredCluster> measure_cluster(const std::shared_ptr<const Cluster>& cluster,
                                        const Control& control);

struct RankCluster {
  std::shared_ptr<const Cluster> cluster;  // on rank 0 only, like the labels
  std::vector<std::string> labels;         // of the hosts, by rank
  RankLinks links;                         // as measured
};
// Collective: all ranks call it. Describes the machines of all ranks, one after the other, and measures the
// links between them.
Result<RankCluster> measure_rank_cluster(RankGroup& group);

// Each device class's time relative to the fastest class, by peak rates and speeds.
std::vector<std::pair<std::string, double>> class_factors(const Cluster& cluster);

}  // namespace heddle
