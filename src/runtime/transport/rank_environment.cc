// Reads the environment variables that mpirun, mpiexec and srun set for their processes.
#include <cstdlib>

#include "heddle/base/numbers.h"
#include "heddle/runtime/transport.h"

namespace heddle {
namespace {

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const auto value = parse_number<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

RankEnvironment rank_environment() {
  // Open MPI; MPICH, Intel MPI and Slurm's PMI.
  constexpr const char* kNames[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                       {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank_name, size_name] : kNames) {
    const auto rank = number_in_environment(rank_name);
    const auto size = number_in_environment(size_name);
    if (rank && size && *size >= 1 && *rank < *size) return {*rank, *size};
  }
  return {};
}

int64_t nap_ns(int64_t waited_ns, bool others_compute) {
  // On a virtual machine a nap ends some 60 us late. Messages of a few MiB take at most 2 ms.
  const int64_t yield_ns = others_compute ? 200'000 : 5'000'000;
  constexpr int64_t kMostNs = 100'000;
  return waited_ns < yield_ns ? 0 : std::min(waited_ns / 16, kMostNs);
}

}  // namespace heddle
