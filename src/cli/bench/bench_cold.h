// The suite of cold starts.
#pragma once

#include "bench.h"

namespace heddle::cli {

Result<std::vector<BenchRow>> bench_cold(const BenchOptions& options, const Invocation& invocation);

}  // namespace heddle::cli
