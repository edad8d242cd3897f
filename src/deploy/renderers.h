// One function per engine; render.cc has the list.
#pragma once

#include "heddle/deploy/render.h"

namespace heddle {

Result<DeployFiles> kubernetes_files(const Workloads& workloads);
Result<DeployFiles> slurm_files(const Workloads& workloads);
Result<DeployFiles> ray_files(const Workloads& workloads);
Result<DeployFiles> systemd_files(const Workloads& workloads);

}  // namespace heddle
