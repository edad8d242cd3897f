#include "heddle/runtime/profiler.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"

namespace heddle {

std::vector<OpId> finest_ops(const Graph& graph, std::span<const OpId> ops) {
  std::vector<OpId> finest;
  for (OpId op : ops) {
    const auto& members = graph.op(op).members;
    if (members.empty())
      finest.push_back(op);
    else
      finest.insert(finest.end(), members.begin(), members.end());
  }
  std::sort(finest.begin(), finest.end());
  return finest;
}

std::vector<ProfileRequest> profile_requests(const Graph& graph, const Cluster& cluster,
                                             const SegmentMeasurer& measurer) {
  std::vector<ProfileRequest> requests;
  std::set<std::string> targets;
  std::vector<OpId> all;
  for (size_t i = 0; i < graph.num_ops(); ++i) all.emplace_back(i);
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const DeviceId id(d);
    const Device& device = cluster.device(id);
    if (device.target.empty() || !measurer.supports(device) || !targets.insert(device.target).second)
      continue;
    if (all.size() > 1) requests.push_back({all, id});
    for (OpId op : all) requests.push_back({{op}, id});
  }
  return requests;
}

std::vector<ProfileRequest> profile_requests(const Plan& plan) {
  std::vector<ProfileRequest> requests;
  for (const Segment& segment : plan.segments) requests.push_back({segment.ops, segment.device});
  return requests;
}

ProfileKey profile_key(uint64_t signature, const Device& device, int batch,
                       const MeasureConditions& conditions) {
  return {.signature = signature,
          .target = conditions.host_access ? host_access_target(device.target) : device.target,
          .batch = batch,
          .share = 1. / conditions.share};
}

namespace {

std::string label_of(const Graph& graph, std::span<const OpId> ops) {
  std::string label = graph.op(ops.front()).name;
  if (ops.size() > 1)
    label += " .. " + graph.op(ops.back()).name + " (" + std::to_string(ops.size()) + " ops)";
  return label;
}

// Many requests have equal signatures (repeated blocks); each signature is measured once.
class Profiling {
 public:
  Profiling(const Graph& graph, const Cluster& cluster, const SignatureFn& signature,
            SegmentMeasurer& measurer, ProfileStore& store, const ProfileOptions& options)
      : graph_(graph),
        cluster_(cluster),
        signature_(signature),
        measurer_(measurer),
        store_(store),
        options_(options) {}

  Result<ProfileSummary> run(std::span<const ProfileRequest> requests) {
    summary_.requested = static_cast<int>(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      if (options_.deadline.should_stop()) return summary_;
      HEDDLE_ASSIGN_OR_RETURN(const bool go_on, one(requests[i]));
      if (!go_on) return summary_;
      if (options_.progress)
        options_.progress->report({.what = options_.what,
                                   .done = static_cast<double>(i + 1),
                                   .total = static_cast<double>(requests.size())});
    }
    summary_.complete = true;
    return summary_;
  }

 private:
  Result<bool> one(const ProfileRequest& request) {
    const Device& device = cluster_.device(request.device);
    if (request.ops.empty() || device.target.empty() || !measurer_.supports(device)) {
      ++summary_.unsupported;
      return true;
    }
    const std::vector<OpId> finest = finest_ops(graph_, request.ops);
    const ProfileKey key = profile_key(signature_(finest), device, options_.batch, measurer_.conditions());
    if (!taken_.insert({key.signature, key.target}).second) {
      ++summary_.present;
      return true;
    }
    std::optional<ProfileRecord> earlier;
    if (!options_.again) {
      HEDDLE_ASSIGN_OR_RETURN(earlier, store_.find(key));
      HEDDLE_ASSIGN_OR_RETURN(const bool lacks, lacks_core_taken(key, device));
      if (earlier && !lacks && !worth_repeating(*earlier, std::time(nullptr))) {
        ++summary_.present;
        return true;
      }
    }
    const auto measured = measurer_.measure(finest, device, options_.deadline);
    if (!measured.ok()) {
      if (measured.error().code() == Code::kCancelled) return false;
      ++summary_.failed;
      if (summary_.first_failure.empty()) summary_.first_failure = measured.error().to_string();
      return true;
    }
    ProfileRecord record{.key = key,
                         .label = label_of(graph_, request.ops),
                         .median_us = measured->median_us,
                         .rel_spread = measured->rel_spread,
                         .runs = measured->runs,
                         .taken_at = {}};
    // The calmer of the two stays, and counts as new.
    if (earlier && earlier->rel_spread < record.rel_spread) {
      record = *earlier;
      record.taken_at.clear();
    }
    HEDDLE_RETURN_IF_ERROR(store_.put(record));
    if (measured->core_taken > 0) {
      // Relative to the time alone that is stored: the machine may have been faster or slower when that was measured.
      record.key.target = core_taken_target(key.target);
      record.median_us *= measured->core_taken;
      HEDDLE_RETURN_IF_ERROR(store_.put(record));
    }
    ++summary_.measured;
    return true;
  }

  Result<bool> lacks_core_taken(ProfileKey key, const Device& device) const {
    if (!measurer_.conditions().core_taken || device.cores.empty()) return false;
    key.target = core_taken_target(key.target);
    HEDDLE_ASSIGN_OR_RETURN(const auto known, store_.find(key));
    return !known;
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const SignatureFn& signature_;
  SegmentMeasurer& measurer_;
  ProfileStore& store_;
  const ProfileOptions& options_;
  ProfileSummary summary_;
  std::set<std::pair<uint64_t, std::string>> taken_;
};

}  // namespace

Result<ProfileSummary> profile(const Graph& graph, const Cluster& cluster,
                               std::span<const ProfileRequest> requests, const SignatureFn& signature,
                               SegmentMeasurer& measurer, ProfileStore& store,
                               const ProfileOptions& options) {
  return Profiling(graph, cluster, signature, measurer, store, options).run(requests);
}

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
