// Inputs of cold-start problems: estimated times with direct host access, and resident parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/problem.h"

namespace heddle {

// The problem's costs, with an estimate for every missing time with direct host access. On a device that
// needs loads, reading in place overlaps with computing. So an op takes the maximum of its usual time and the
// route's time for its parameters (latency + bytes over bandwidth; each parameter read once). A substitute
// for measurements: SortingHat, Table 1, measures P^DHA. O(ops x devices).
std::shared_ptr<const CostTable> with_host_access(const Problem& problem);

// Per memory pool outside host memory: the first parameters, in the graph's order, that together hold at most
// `fraction` (0 to 1) of all parameters' bytes.
Result<std::vector<std::vector<ParamId>>> resident_fraction(const Problem& problem, double fraction);

// Reads a JSON file of either form. A plan of the same model: resident is what it loads or found resident and
// does not drop; parameters are matched by name. Or an object that maps device names to lists of parameter
// names. Errors name the file and the place; a name unknown to the graph or the cluster is an error.
Result<std::vector<std::vector<ParamId>>> resident_from_file(const Problem& problem, const std::string& path);

}  // namespace heddle
