// What verbs do when mpirun started them on several ranks.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "heddle/base/json_fwd.h"
#include "heddle/runtime/rank_links.h"

namespace heddle::cli {

// One machine of several: what its rank found there.
struct FoundHost {
  std::string host_name;
  Json cluster;  // cluster_to_json of that machine alone
};
// One cluster file of all: every name gets its host's before it, hosts of one name their rank's number behind
// it, and measured links lead from host to host, or from each to a switch.
Json join_hosts(const std::vector<FoundHost>& found, const RankLinks& links);

// heddle devices: this machine of every rank, one after the other, and the links between them.
Result<int> run_devices_on_ranks(const std::string& output, const Invocation& invocation);

}  // namespace heddle::cli
