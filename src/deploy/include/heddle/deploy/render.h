// A deployment as files of the engine that keeps it running.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/deploy/workloads.h"

namespace heddle {

// Names of engines: "kubernetes" and others.
std::vector<std::string> deploy_targets();

// By path in the folder. Scripts (.sh, .sbatch) are written executable.
using DeployFiles = std::map<std::string, std::string>;

// `target`: one of deploy_targets(). Unsupported: a plan over several hosts on Kubernetes, Ray or systemd, what the
// target cannot do.
Result<DeployFiles> render_deployment(const Workloads& workloads, const std::string& target);

// Makes the folder where it is missing and writes the files; removes files of an earlier deployment there (those that
// its `files.txt` lists) and leaves all others, such as secrets, alone.
Status write_deployment(const std::string& folder, const DeployFiles& files);
// The files of a deployment that was written there.
Result<DeployFiles> read_deployment(const std::string& folder);

struct FileDifference {
  std::string path;
  std::string kind;  // "added", "removed", "changed"
  std::string text;  // unified, three lines of context
};
// What changes from `old_files` to `new_files`, by path.
std::vector<FileDifference> deployment_differences(const DeployFiles& old_files,
                                                   const DeployFiles& new_files);

}  // namespace heddle
