#include "heddle/session/fleet_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fleet_blocks.h"
#include "heddle/runtime/device_shares.h"
#include "heddle/runtime/precision_error.h"
#include "session_parts.h"

namespace heddle {
namespace {

// Devices of one target are equally fast and form one class. Core sets that overlap cannot be pools at once,
// so a class counts only devices whose cores no earlier class has; the user may change the count.
struct ClassList {
  std::vector<DeviceClass> classes;
  std::vector<DeviceId> device;  // one of each
};

constexpr double kLocalNicBytesPerS = 1e9;  // if the cluster's file has no link between hosts

// Of the fastest route between devices of two hosts; 0 if there is none.
double rate_between_hosts(const Cluster& cluster) {
  double fastest = 0;
  for (size_t a = 0; a < cluster.num_devices(); ++a) {
    for (size_t b = 0; b < cluster.num_devices(); ++b) {
      const DeviceId from(a), to(b);
      if (cluster.device(from).host == cluster.device(to).host) continue;
      if (const Route* route = cluster.route(from, to)) fastest = std::max(fastest, route->bytes_per_s);
    }
  }
  return fastest;
}

Result<ClassList> classes_of(const Cluster& cluster, const std::vector<DeviceId>& devices, int share_levels) {
  ClassList out;
  std::map<std::string, size_t> index;
  std::map<std::pair<HostId, int>, size_t> owner;  // of a core: the first class that has it
  for (const auto id : devices) {
    const auto& d = cluster.device(id);
    if (d.target.empty()) continue;
    const auto own = index.contains(d.target) ? index[d.target] : out.classes.size();
    bool free = true;
    for (const int core : d.cores)
      free = owner.emplace(std::pair(d.host, core), own).first->second == own && free;
    const auto [entry, fresh] = index.emplace(d.target, out.classes.size());
    if (!fresh) {
      auto& c = out.classes[entry->second];
      c.count += free;
      // Devices that can be used at once come first.
      c.devices.insert(free ? c.devices.begin() + (c.count - 1) : c.devices.end(), d.name);
      ++c.devices_per_server;
      continue;
    }
    DeviceClass c;
    c.name = d.name;
    c.count = free;
    c.devices = {d.name};
    c.memory_bytes = d.memory_bytes;
    c.nic_bytes_per_s = kLocalNicBytesPerS;
    c.share_levels = std::clamp(most_shares(d), 1, share_levels);
    out.classes.push_back(std::move(c));
    out.device.push_back(id);
  }
  if (out.classes.empty())
    return invalid_input("no device of the cluster is on this machine, so nothing can be measured");
  if (const double nic = rate_between_hosts(cluster); nic > 0)
    for (auto& c : out.classes) c.nic_bytes_per_s = nic;
  return out;
}

std::string share_text(int share) { return "share 1/" + std::to_string(share); }

// One model of the fleet while its blocks are measured.
class ModelProfile {
 public:
  ModelProfile(const FleetProfileSettings& settings, ModelSpec source, const Control& control)
      : settings_(settings), source_(std::move(source)), control_(control) {}

  // Makes the fleet's classes where there are none yet.
  Result<FleetModel> run(std::optional<Fleet>& fleet) {
    HEDDLE_RETURN_IF_ERROR(open());
    if (!fleet) {
      fleet.emplace();
      fleet->name = session_.cluster->name();
      fleet->classes = classes_.classes;
    }
    HEDDLE_ASSIGN_OR_RETURN(FleetModel model, blocks_of_model());
    HEDDLE_RETURN_IF_ERROR(measure_shares(model));
    // As in the paper: a multiple of the fastest class's time for one request.
    double fastest = INFINITY;
    for (const auto& of_class : model.latency_us) {
      double sum = 0;
      for (const double t : of_class[0][0]) sum += t;
      fastest = std::min(fastest, sum);
    }
    model.slo_us = settings_.slo_factor * fastest;
    model.margin_us = settings_.margin * model.slo_us;
    return model;
  }

 private:
  Status open() {
    source_.import.batch = 1;
    ProblemSettings problem;
    problem.cluster = settings_.cluster;
    problem.store = settings_.store;
    problem.variants = settings_.variants;
    HEDDLE_ASSIGN_OR_RETURN(session_, open_session(source_, problem, control_));
    if (!session_.may_measure)
      return invalid_input(source_.path + " on cluster '" + session_.cluster->name() +
                           "': nothing can be measured; expected a real model and a device of this machine");
    HEDDLE_ASSIGN_OR_RETURN(
        classes_, classes_of(*session_.cluster, session_.problem.usable_devices(), settings_.share_levels));
    return {};
  }

  Result<FleetModel> blocks_of_model() {
    const auto& graph = *session_.problem.graph;
    std::vector<std::vector<double>> us;
    for (const auto device : classes_.device) {
      us.emplace_back();
      for (size_t op = 0; op < graph.num_ops(); ++op)
        us.back().push_back(session_.problem.costs->us(OpId(op), device));
    }
    HEDDLE_ASSIGN_OR_RETURN(auto cut,
                            cut_into_blocks(session_.loaded, source_, graph, us, settings_.cutting));
    blocks_ = std::move(cut.blocks);
    return std::move(cut.model);
  }

  Status measure_shares(FleetModel& model) const {
    model.latency_us.resize(classes_.classes.size());
    int levels = 1;
    for (const auto& c : classes_.classes) levels = std::max(levels, c.share_levels);
    HEDDLE_ASSIGN_OR_RETURN(const int batches, most_batches());
    for (int share = 1; share <= levels; ++share) {
      // A share of a device runs a share of the batch.
      for (int batch = 1; batch <= std::max(1, batches / share); ++batch) {
        HEDDLE_ASSIGN_OR_RETURN(const auto times, measure_blocks(batch, share));
        for (size_t c = 0; c < times.size(); ++c) {
          if (times[c].empty()) continue;
          model.latency_us[c].resize(static_cast<size_t>(share));
          auto& of_batch = model.latency_us[c].back().emplace_back();
          for (const Cost& cost : times[c]) of_batch.push_back(note_source(model, c, cost));
        }
      }
    }
    return {};
  }

  // 1 for models whose inputs do not take another batch size.
  Result<int> most_batches() const {
    if (settings_.batches < 2) return 1;
    HEDDLE_ASSIGN_OR_RETURN(const auto two, load_model({source_.path, source_.import.at_batch(2)}));
    const Graph &one = *session_.loaded.graph, &both = *two.graph;
    for (size_t i = 0; i < one.inputs().size(); ++i)
      if (one.tensor(one.inputs()[i]).shape != both.tensor(both.inputs()[i]).shape) return settings_.batches;
    return 1;
  }

  // Times of the blocks at one batch size on a share of one device of each class that has such shares, with
  // all shares busy, [class][block]; classes without them have none.
  Result<std::vector<std::vector<Cost>>> measure_blocks(int batch, int share) const {
    ModelSpec source = source_;
    source.import = source.import.at_batch(batch);
    HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(source));
    if (!loaded.model || loaded.graph->num_ops() != session_.loaded.graph->num_ops())
      return unsupported(source_.path + ": has other ops at batch " + std::to_string(batch) +
                         " than at batch 1; measure fewer batch sizes");
    std::vector<ProfileRequest> wanted;
    for (size_t c = 0; c < classes_.device.size(); ++c)
      for (const auto& ops : blocks_)
        if (share <= classes_.classes[c].share_levels) wanted.push_back({ops, classes_.device[c]});
    MeasuringOptions options{.min_s = kUnitSeconds,
                             .batch = batch,
                             .conditions = {.share = share},
                             .what = "blocks of " + loaded.name + ", batch " + std::to_string(batch)};
    if (share > 1) options.what += ", " + share_text(share);
    HEDDLE_ASSIGN_OR_RETURN(const auto summary,
                            profile_segments(session_, loaded, *loaded.graph, wanted, options, control_));
    if (!summary.complete && control_.cancel.cancelled())
      return cancelled_error("stopped; what was measured is in " + session_.store->path() +
                             "; run the same command again to continue");
    std::vector<std::vector<Cost>> times(classes_.device.size());
    for (size_t c = 0; c < classes_.device.size(); ++c) {
      if (share > classes_.classes[c].share_levels) continue;
      for (size_t k = 0; k < blocks_.size(); ++k) {
        HEDDLE_ASSIGN_OR_RETURN(const Cost cost, known_time(c, k, batch, share, summary));
        times[c].push_back(cost);
      }
    }
    return times;
  }

  Result<Cost> known_time(size_t c, size_t block, int batch, int share, const ProfileSummary& summary) const {
    const auto key = profile_key(session_.loaded.model->signature(blocks_[block]),
                                 session_.cluster->device(classes_.device[c]), batch, {.share = share});
    HEDDLE_ASSIGN_OR_RETURN(const auto found, session_.store->find(key));
    if (found) return Cost{found->median_us, Origin::kMeasured, found->rel_spread};
    return invalid_input(source_.path + ": block " + std::to_string(block) + " could not be measured on " +
                         classes_.classes[c].name + " at batch " + std::to_string(batch) + ", " +
                         share_text(share) +
                         (summary.first_failure.empty() ? "" : ": " + summary.first_failure));
  }

  const FleetProfileSettings& settings_;
  ModelSpec source_;
  const Control& control_;
  Session session_;
  ClassList classes_;
  std::vector<std::vector<OpId>> blocks_;  // ops of the model's own graph
};

// The type with the largest rounding among this machine's devices.
Result<Precision> narrowest_of(const FleetProfileSettings& settings, const VariantSettings& variants) {
  std::shared_ptr<const Cluster> cluster = settings.cluster;
  if (cluster == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(cluster, open_cluster("preset:local"));
  }
  HEDDLE_ASSIGN_OR_RETURN(cluster, choose_variants(cluster, variants));
  Precision narrow = Precision::kF32;
  for (const Device& device : cluster->devices())
    if (!device.target.empty() && rounding_of(device.precision) > rounding_of(narrow))
      narrow = device.precision;
  return narrow;
}

}  // namespace

Result<FleetPrecision> under_budget(const FleetProfileSettings& settings, const Control& control) {
  FleetPrecision chosen;
  const ErrorBudget budget = settings.variants.budget.value_or(ErrorBudget());
  chosen.variants = settings.variants;
  chosen.variants.budget.reset();
  HEDDLE_ASSIGN_OR_RETURN(chosen.narrow, narrowest_of(settings, chosen.variants));
  if (chosen.narrow == Precision::kF32) return chosen;
  const ModelTypeError* over = nullptr;
  chosen.models.reserve(settings.models.size());
  for (const ModelSpec& source : settings.models) {
    control.report("measuring the error of types", static_cast<double>(chosen.models.size()),
                   static_cast<double>(settings.models.size()));
    HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model({source.path, source.import.at_batch(1)}));
    if (loaded.model == nullptr) return invalid_input(source.path + ": a budget needs a real model");
    HEDDLE_ASSIGN_OR_RETURN(auto inputs,
                            calibration_inputs(*loaded.model, settings.calibration, loaded.name));
    HEDDLE_ASSIGN_OR_RETURN(const Samples samples, with_references(*loaded.model, std::move(inputs)));
    HEDDLE_ASSIGN_OR_RETURN(const OutputError error,
                            unsplit_error(*loaded.model, chosen.narrow, samples, settings.decisions));
    // Without samples nothing here can tell what the type costs.
    chosen.models.push_back({loaded.name, error.agreement(), error.mean(),
                             error.samples > 0 && budget.allows(error.agreement(), error.mean())});
    if (!chosen.models.back().allowed) over = &chosen.models.back();
  }
  if (over == nullptr) return chosen;
  chosen.variants.precisions = {precision_name(Precision::kF32)};
  HEDDLE_ASSIGN_OR_RETURN(const Precision fixed, narrowest_of(settings, chosen.variants));
  if (fixed == Precision::kF32) return chosen;
  return infeasible(
      fmt::format("{} keeps {:.4g} % of decisions and has a mean error of {:.3g} of the range in {}, which "
                  "the cluster file fixes: raise the budget, or let devices compute in f32",
                  over->model, 100 * over->agreement, over->mean, precision_name(fixed)));
}

Result<Fleet> profile_fleet(const FleetProfileSettings& settings, const Control& control) {
  std::optional<Fleet> fleet;
  std::vector<FleetModel> models;
  for (const ModelSpec& source : settings.models) {
    HEDDLE_ASSIGN_OR_RETURN(auto model, ModelProfile(settings, source, control).run(fleet));
    models.push_back(std::move(model));
  }
  if (!fleet) return invalid_input("a fleet needs a model");
  fleet->models = std::move(models);
  HEDDLE_RETURN_IF_ERROR(check_fleet(*fleet));
  return std::move(*fleet);
}

}  // namespace heddle
