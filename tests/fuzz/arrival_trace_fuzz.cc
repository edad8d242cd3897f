// Any bytes as a trace: both readers give times in order or an error with a message, and what was read can be
// played.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/function_trace.h"
#include "require.h"

namespace {

using namespace heddle;

void function_trace(std::string_view text) {
  const auto whole = function_trace_from_csv(text);
  if (!whole.ok()) {
    require(!whole.error().to_string().empty());
    return;
  }
  require(whole->functions >= 1 && whole->start_s.front() == 0);
  for (size_t i = 1; i < whole->start_s.size(); ++i)
    require(std::isfinite(whole->start_s[i]) && whole->start_s[i] >= whole->start_s[i - 1]);
  Traffic traffic;
  traffic.kind = TrafficKind::kFunctions;
  traffic.functions = &*whole;
  for (const bool folded : {true, false}) {
    traffic.folded = folded;
    const double rates[] = {50};
    const auto played = make_arrivals(traffic, rates, 2, 1);
    if (played.ok()) require(played->size() < 200 + 2 * whole->start_s.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  function_trace(text);
  const std::vector<std::string> models = {"a", "b"};
  for (const size_t n : {1, 2}) {
    const auto recorded = arrivals_from_csv(text, std::span(models).first(n));
    if (!recorded.ok()) {
      require(!recorded.error().to_string().empty());
      continue;
    }
    for (size_t i = 0; i < recorded->size(); ++i) {
      require((*recorded)[i].at >= 0 && (*recorded)[i].model < n);
      require(i == 0 || (*recorded)[i].at >= (*recorded)[i - 1].at);
    }
  }
  return 0;
}
