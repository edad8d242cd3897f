#include "fastest_routes.h"

#include "heddle/plan/relaxation.h"

namespace heddle {

bool has_fastest_routes(const FlatProblem& flat) {
  constexpr double kRounding = 1e-12;  // relative: sums of latencies differ by their order
  const size_t k = flat.num_devices();
  // Only its routes are needed, no blocks.
  const Relaxation relaxation = relax(flat.problem(), Deadline::after_seconds(0));
  for (size_t u = 0; u < k; ++u) {
    for (size_t v = 0; v < k; ++v) {
      const RoutedTransfer& way = flat.way(u, v);
      const TransferRate& fastest = relaxation.rates[u * k + v];
      if (way.passage == Passage::kFree) continue;
      if (way.passage == Passage::kNone) return false;
      if (way.latency_us > fastest.latency_us * (1 + kRounding) ||
          1e6 / way.bytes_per_s > fastest.us_per_byte * (1 + kRounding))
        return false;
    }
  }
  return true;
}

}  // namespace heddle
