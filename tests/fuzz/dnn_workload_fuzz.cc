// Any bytes: a placement workload is read, and splits of it are evaluated and checked; or it is an error with
// a message.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/plan/dnn_split.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = heddle::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  const auto workload = heddle::dnn_workload_from_json(*document, "fuzz");
  if (!workload.ok()) {
    require(!workload.error().to_string().empty());
    return 0;
  }
  require(heddle::is_dnn_workload(*document));
  require(workload->order.size() == workload->nodes.size());
  heddle::DnnSplit split;
  split.device.assign(workload->nodes.size(), workload->accelerators);
  const auto latency = heddle::evaluate_dnn_split(*workload, split, heddle::DnnObjective::kLatency);
  require(latency.ok() && std::isfinite(latency->value));
  require(heddle::check_dnn_split(*workload, split, {heddle::DnnObjective::kLatency, true, 1}).ok());
  for (size_t v = 0; v < split.device.size(); ++v)
    split.device[v] = static_cast<int32_t>(v) % (workload->accelerators + workload->cpus);
  const auto load = heddle::evaluate_dnn_split(*workload, split, heddle::DnnObjective::kMaxLoad);
  require(load.ok() && std::isfinite(load->value));
  (void)heddle::check_dnn_split(*workload, split, {heddle::DnnObjective::kMaxLoad, true, 1});
  // The document may hold a split as well.
  (void)heddle::dnn_split_from_json(*workload, *document);
  return 0;
}
