// The suite of serve starts.
#pragma once

#include "bench.h"

namespace heddle::cli {

Result<std::vector<BenchRow>> bench_serve(const BenchOptions& options, const Invocation& invocation);

}  // namespace heddle::cli
