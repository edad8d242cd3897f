#include "bench.h"
namespace heddle::cli {
Result<std::vector<BenchRow>> bench_moirai_zoo(const BenchOptions&, const Invocation&) { return std::vector<BenchRow>{}; }
Result<std::vector<BenchRow>> bench_moirai(const BenchOptions& options, const Invocation& invocation) { return bench_moirai_workloads(options, invocation); }
}
