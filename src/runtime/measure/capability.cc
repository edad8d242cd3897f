#include "heddle/runtime/capability.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/profiler.h"

namespace heddle {

Status forbid_refused(const Model& model, const Graph& units, const Cluster& cluster,
                      std::span<const DeviceId> devices, CostTable& costs) {
  // Equal devices of one backend give equal answers, so each kind is asked once.
  std::map<std::pair<std::string, std::string>, std::vector<std::optional<Error>>> asked;
  std::vector<bool> runs_somewhere(units.num_ops(), false);
  std::vector<const Error*> reasons(units.num_ops(), nullptr);
  for (const DeviceId id : devices) {
    const Device& device = cluster.device(id);
    const Backend* backend = find_backend(device.backend);
    const auto [it, added] = asked.try_emplace({device.backend, device.backend_device});
    if (added && backend != nullptr) it->second = backend->refusals(device, model);
    const auto& refusals = it->second;
    for (size_t u = 0; u < units.num_ops(); ++u) {
      const OpId unit(u);
      const Error* reason = nullptr;
      if (!refusals.empty()) {
        for (const OpId op : finest_ops(units, {&unit, 1}))
          if (refusals[op.index()] && reason == nullptr) reason = &*refusals[op.index()];
      }
      if (reason == nullptr) {
        runs_somewhere[u] = true;
      } else {
        costs.set(unit, id, {.us = kImpossible, .origin = Origin::kEstimated, .rel_spread = 0});
        reasons[u] = reason;
      }
    }
  }
  for (size_t u = 0; u < units.num_ops(); ++u) {
    if (!runs_somewhere[u] && reasons[u] != nullptr)
      return Error(*reasons[u])
          .with_context("no device of cluster '" + cluster.name() + "' can run '" + units.op(OpId(u)).name +
                        "'");
  }
  return {};
}

}  // namespace heddle
