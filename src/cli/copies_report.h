// Copies that were measured on this machine's accelerators, as tables and JSON.
#pragma once

#include <memory>
#include <string>

#include "command.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/runtime/copy_profile.h"

namespace heddle::cli {

struct MeasuredCluster {
  CopyProfile copies;
  std::shared_ptr<const Cluster> cluster;  // with links and buses as measured
};
// Measures the copies of the cluster's accelerators. Ctrl-C: an error, nothing is kept.
Result<MeasuredCluster> measure_cluster(std::shared_ptr<const Cluster> cluster, const Invocation& invocation);

// Beside the rates that `before` had.
std::string copies_text(const Cluster& before, const CopyProfile& copies);
// {"copies": [...], "at_once": [...], "left_out": [...]}
Json copies_json(const Cluster& before, const CopyProfile& copies);

}  // namespace heddle::cli
