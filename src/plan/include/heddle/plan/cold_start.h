// What a cold start may find and use: estimated times with direct host access, parameters that are resident.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/problem.h"

namespace heddle {

// The problem's costs with a time for direct host access wherever they have none yet: on a device that needs
// loads, reading in place overlaps with computing, so an op takes the longer of its usual time and the
// route's time for its parameters (latency + bytes over bandwidth; each parameter read once). A stand-in for
// measurements (SortingHat, Table 1, measures P^DHA). O(ops x devices).
std::shared_ptr<const CostTable> with_host_access(const Problem& problem);

// Per memory pool outside host memory the first parameters, in the graph's order, that together hold at most
// `fraction` (0 to 1) of all parameters' bytes.
Result<std::vector<std::vector<ParamId>>> resident_fraction(const Problem& problem, double fraction);

// From a JSON file: a plan of the same model leaves behind what it loads or found (parameters are matched by
// name; those that it drops are gone); or an object from device names to lists of parameter names. Errors
// name the file and the place; a name that the graph or the cluster does not have is one.
Result<std::vector<std::vector<ParamId>>> resident_from_file(const Problem& problem, const std::string& path);

}  // namespace heddle
