#include "heddle/session/measured_cluster.h"

namespace heddle {

Result<MeasuredCluster> measure_cluster(std::shared_ptr<const Cluster> cluster, const Control& control) {
  CopyOptions options;
  options.deadline = control.deadline();
  options.progress = control.progress;
  HEDDLE_ASSIGN_OR_RETURN(auto copies, measure_copies(*cluster, options));
  HEDDLE_ASSIGN_OR_RETURN(auto measured, with_measured_links(*cluster, copies.links));
  return MeasuredCluster{std::move(copies), std::move(measured)};
}

}  // namespace heddle
