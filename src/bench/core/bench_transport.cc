// The transport suite: what a message of a plan costs beside MPI alone, in turns in one run.
#include "core/transport_bench.h"
#include "heddle/base/units.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr double kTargetAddedUs = 20;

// Even, so that the last message of a chain comes back to rank 0, which has the time.
int messages_of(int64_t bytes) { return bytes <= 1 << 16 ? 100 : 20; }

}  // namespace

Result<std::vector<BenchRow>> bench_transport(const BenchOptions& options, const Control&) {
  if (rank_environment().size < 2) {
    return Error(
        Code::kInvalidInput,
        "suite transport measures between two ranks: start it as mpirun -n 2 heddle bench transport");
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  std::vector<BenchRow> rows;
  for (const int64_t bytes :
       {int64_t{8}, int64_t{1} << 10, int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 22}) {
    HEDDLE_ASSIGN_OR_RETURN(const auto result, bench_messages(group, bytes, messages_of(bytes),
                                                              static_cast<int>(options.repeats)));
    const auto add = [&](const char* metric, const char* unit, double value) -> BenchRow& {
      rows.push_back(bench_row("transport", "messages of " + format_bytes(bytes), "", metric, unit, value));
      return rows.back();
    };
    auto& time = add("one message", "us", result.executor_us);
    time.beside("MPI alone", result.raw_us);
    auto& added = add("added by the executor", "us", result.executor_us - result.raw_us);
    added.against(kTargetAddedUs, "target");
    add("ratio", "", result.raw_us > 0 ? result.executor_us / result.raw_us : 0);
  }
  return rows;
}

}  // namespace heddle::bench
