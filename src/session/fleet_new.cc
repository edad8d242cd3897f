#include "heddle/session/fleet_new.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fleet_blocks.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/cluster/variants.h"
#include "heddle/fleet/estimated_rates.h"
#include "heddle/graph/batch.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/device_shares.h"
#include "heddle/runtime/profiler.h"
#include "session_parts.h"

namespace heddle {
namespace {

struct NewClass {
  DeviceClass fleet;
  Device device;  // one of them
};

bool is_here(const NewClass& c) { return !c.device.target.empty(); }

// The classes of a fleet, from the catalogue and from a cluster that is opened at the first class beside it.
class Classes {
 public:
  explicit Classes(const NewFleetSettings& settings) : settings_(settings), cluster_(settings.cluster) {}

  Result<std::vector<NewClass>> read() {
    std::vector<NewClass> classes;
    std::set<std::string> seen;
    for (const auto& [name, count] : settings_.devices) {
      if (!seen.insert(name).second)
        return invalid_input("class " + quote_text(name) + " is given twice; give it one count");
      HEDDLE_ASSIGN_OR_RETURN(auto c, read(name, count));
      if (!(c.device.peak_flops > 0) || !(c.device.memory_bytes_per_s > 0))
        return invalid_input(
            "class " + quote_text(name) +
            " has no peak rates, so its times cannot be estimated; give its devices 'flops' and "
            "'memory_bandwidth' in the cluster file");
      classes.push_back(std::move(c));
    }
    if (classes.empty()) return invalid_input("a fleet needs a class of devices");
    return classes;
  }

 private:
  Result<NewClass> read(const std::string& name, int64_t count) {
    NewClass c;
    c.fleet.name = name;
    c.fleet.count = count;
    double link = 0;
    if (const CatalogueDevice* row = find_in_catalogue(name)) {
      c.device = make_device(*row, name, HostId(0));
      c.device.precision = settings_.precision;
      c.device.peak_flops = peak_flops(*row, settings_.precision);
      link = row->link_bytes_per_s;
    } else {
      HEDDLE_RETURN_IF_ERROR(read_from_cluster(c, link));
    }
    c.fleet.memory_bytes = c.device.memory_bytes;
    c.fleet.nic_bytes_per_s =
        link > 0 ? std::min(link, settings_.nic_bytes_per_s) : settings_.nic_bytes_per_s;
    c.fleet.share_levels =
        is_here(c) ? std::clamp(most_shares(c.device), 1, settings_.share_levels) : settings_.share_levels;
    return c;
  }

  Status read_from_cluster(NewClass& c, double& link) {
    if (cluster_ == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(cluster_, open_cluster("preset:local"));
    }
    // As plans and profiles of this machine do, each engine takes its own type.
    HEDDLE_ASSIGN_OR_RETURN(cluster_, choose_variants(cluster_, {}));
    std::vector<std::string> names;
    for (size_t d = 0; d < cluster_->num_devices(); ++d) {
      const Device& device = cluster_->device(DeviceId(d));
      if (cluster_->is_variant(DeviceId(d)) || hardware_name(device.device_class) != c.fleet.name) continue;
      if (names.empty()) c.device = device;
      names.push_back(device.name);
      if (const Route* route = cluster_->load_route(DeviceId(d)); route != nullptr && !route->hops.empty())
        link = route->bytes_per_s;
    }
    if (names.empty()) return unknown(c.fleet.name);
    if (is_here(c) && c.fleet.count <= static_cast<int64_t>(names.size())) c.fleet.devices = std::move(names);
    c.device.host = HostId(0);
    return {};
  }

  Error unknown(const std::string& name) const {
    std::vector<std::string> known, own;
    for (const auto& device : cluster_->devices())
      if (const auto hardware = hardware_name(device.device_class);
          std::ranges::find(own, hardware) == own.end())
        own.push_back(hardware);
    for (const auto& row : device_catalogue()) known.emplace_back(row.name);
    known.insert(known.end(), own.begin(), own.end());
    return invalid_input("class " + quote_text(name) + did_you_mean(name, known) +
                         ": neither the catalogue (`heddle devices --catalogue`) nor cluster " +
                         quote_text(cluster_->name()) + " has it; the cluster has " + join_names(own));
  }

  const NewFleetSettings& settings_;
  std::shared_ptr<const Cluster> cluster_;
};

// One model of the fleet.
class NewModel {
 public:
  NewModel(const NewFleetSettings& settings, const std::vector<NewClass>& classes, ModelSpec source)
      : settings_(settings),
        classes_(classes),
        source_(std::move(source)),
        roofline_(roofline_cost_model()) {}

  Result<FleetModel> make() {
    HEDDLE_RETURN_IF_ERROR(open());
    HEDDLE_RETURN_IF_ERROR(group());
    std::vector<std::vector<double>> us;
    for (size_t c = 0; c < classes_.size(); ++c) {
      us.emplace_back();
      for (size_t u = 0; u < units_->num_ops(); ++u)
        us.back().push_back(time_of(c, {OpId(u)}, *fine_, 1, 1).us);
    }
    HEDDLE_ASSIGN_OR_RETURN(auto cut,
                            cut_into_blocks(session_.loaded, source_, *units_, us, settings_.cutting));
    blocks_ = units_of_blocks(cut.blocks);
    HEDDLE_RETURN_IF_ERROR(check_memory(cut.model));
    HEDDLE_RETURN_IF_ERROR(fill_times(cut.model));
    // A model with a file is run for real, for which every class needs devices here.
    const auto runs = [](const NewClass& c) { return !c.fleet.devices.empty(); };
    if (!std::ranges::all_of(classes_, runs)) cut.model.file = {};
    return std::move(cut.model);
  }

 private:
  Status open() {
    const auto& path = source_.path;
    if (!path.starts_with("zoo:") && !path.ends_with(".json")) source_.import.batch = 1;
    HEDDLE_ASSIGN_OR_RETURN(session_.loaded, load_model(source_));
    const auto has_times = [](const Op& op) { return !op.given_times.empty(); };
    if (session_.loaded.simulation || std::ranges::any_of(session_.loaded.graph->ops(), has_times))
      return unsupported(path +
                         ": brings times of its own, which hold for its own classes and one batch size; "
                         "expected a model (.onnx) or zoo:NAME");
    if (!session_.loaded.model || std::ranges::none_of(classes_, is_here)) return {};
    const auto store = settings_.store.empty() ? ProfileStore::default_path() : settings_.store;
    HEDDLE_ASSIGN_OR_RETURN(session_.store, ProfileStore::open(store, measuring_fingerprint()));
    measured_ = measured_cost_model(session_.store, signature_of(session_.loaded));
    return {};
  }

  // Estimates need fine units; blocks of models that were measured here consist of the units that were measured.
  Status group() {
    ClusterBuilder builder(settings_.name);
    builder.add_host({.name = "host"});
    for (const auto& c : classes_) {
      Device device = c.device;
      device.name = c.fleet.name;
      builder.add_device(std::move(device));
    }
    HEDDLE_ASSIGN_OR_RETURN(session_.cluster, builder.build());
    HEDDLE_ASSIGN_OR_RETURN(fine_, make_units(session_, kEstimatedUnits, false, {}));
    units_ = fine_;
    if (measured_) {
      HEDDLE_ASSIGN_OR_RETURN(units_, make_units(session_, kMeasuredUnits, false, {}));
    }
    std::vector<size_t> unit_of(session_.loaded.graph->num_ops());
    for (size_t u = 0; u < units_->num_ops(); ++u)
      for (const OpId op : finest_of(*units_, OpId(u))) unit_of[op.index()] = u;
    parts_.assign(units_->num_ops(), {});
    for (size_t f = 0; f < fine_->num_ops(); ++f)
      parts_[unit_of[finest_of(*fine_, OpId(f)).front().index()]].emplace_back(f);
    return {};
  }

  static std::vector<OpId> finest_of(const Graph& graph, OpId op) { return finest_ops(graph, {&op, 1}); }

  // Units of each block, in ascending order.
  std::vector<std::vector<OpId>> units_of_blocks(const std::vector<std::vector<OpId>>& blocks) const {
    std::vector<size_t> block_of(session_.loaded.graph->num_ops());
    for (size_t k = 0; k < blocks.size(); ++k)
      for (const OpId op : blocks[k]) block_of[op.index()] = k;
    std::vector<std::vector<OpId>> units(blocks.size());
    for (size_t u = 0; u < units_->num_ops(); ++u)
      units[block_of[finest_of(*units_, OpId(u)).front().index()]].emplace_back(u);
    return units;
  }

  Status check_memory(const FleetModel& model) const {
    const auto largest_block = *std::ranges::max_element(model.parameter_bytes);
    double all = 0, most = 0;
    for (const auto bytes : model.parameter_bytes) all += static_cast<double>(bytes);
    for (const auto& c : classes_) {
      const int64_t memory = c.fleet.memory_bytes;
      if (memory > 0 && largest_block > memory)
        return invalid_input("model " + quote_text(model.name) + " on class " + quote_text(c.fleet.name) +
                             ": a block has " + format_bytes(largest_block) +
                             " of parameters, the device has " + format_bytes(memory) +
                             " of memory; cut the model into more blocks, or leave the class out");
      most = std::max(most, memory > 0 ? static_cast<double>(memory) : INFINITY);
    }
    const int partitions = Fleet().max_partitions;
    if (all <= partitions * most) return {};
    return invalid_input("model " + quote_text(model.name) + " has " +
                         format_bytes(static_cast<int64_t>(all)) + " of parameters; a pipeline of " +
                         counted(static_cast<uint64_t>(partitions), "partition") +
                         " on these classes holds " + format_bytes(static_cast<int64_t>(partitions * most)) +
                         "; add a class with more memory");
  }

  Status fill_times(FleetModel& model) const {
    model.latency_us.resize(classes_.size());
    for (int batch = 1; batch <= settings_.batches; ++batch) {
      HEDDLE_ASSIGN_OR_RETURN(const auto graph, with_batch(*fine_, batch));
      for (size_t c = 0; c < classes_.size(); ++c) {
        auto& of_class = model.latency_us[c];
        of_class.resize(static_cast<size_t>(classes_[c].fleet.share_levels));
        for (int share = 1; share <= classes_[c].fleet.share_levels; ++share) {
          if (batch > std::max(1, settings_.batches / share)) continue;
          auto& of_batch = of_class[static_cast<size_t>(share - 1)].emplace_back();
          for (const auto& block : blocks_)
            of_batch.push_back(rounded(note_source(model, c, time_of(c, block, *graph, batch, share))));
        }
      }
    }
    return {};
  }

  // No time is known better than to a tenth of a microsecond.
  static double rounded(double us) { return std::max(0.1, std::round(10 * us) / 10); }

  // Of some units together. `graph` is the fine graph at that batch size.
  Cost time_of(size_t c, const std::vector<OpId>& units, const Graph& graph, int batch, int share) const {
    const Cost estimate = estimated(c, units, graph, batch, share);
    if (!measured_ || !is_here(classes_[c])) return estimate;
    if (const auto cost = known(c, units, batch, share)) return *cost;
    auto cost = known(c, units, 1, 1);
    if (!cost) return estimate;
    cost->us *= estimate.us / estimated(c, units, *fine_, 1, 1).us;
    cost->origin = Origin::kScaled;
    return *cost;
  }

  // The units measured together, else each by itself.
  std::optional<Cost> known(size_t c, const std::vector<OpId>& units, int batch, int share) const {
    const CostContext context{.batch = batch, .share = 1.0 / share};
    const Device& device = classes_[c].device;
    if (const auto cost = measured_->segment(*units_, units, device, context)) return cost;
    Cost sum{.us = 0, .origin = Origin::kMeasured, .rel_spread = 0};
    for (const OpId unit : units) {
      const auto cost = measured_->segment(*units_, {&unit, 1}, device, context);
      if (!cost) return std::nullopt;
      sum.us += cost->us;
      sum.origin = std::max(sum.origin, cost->origin);
      sum.rel_spread = std::max(sum.rel_spread, cost->rel_spread);
    }
    return sum;
  }

  // As for a plan, a segment takes the sum of its units' times.
  Cost estimated(size_t c, const std::vector<OpId>& units, const Graph& graph, int batch, int share) const {
    Cost sum{.us = 0, .origin = Origin::kEstimated, .rel_spread = 0};
    for (const OpId unit : units)
      for (const OpId op : parts_[unit.index()])
        sum.us +=
            roofline_->segment(graph, {&op, 1}, classes_[c].device, {.batch = batch, .share = 1.0 / share})
                ->us;
    return sum;
  }

  const NewFleetSettings& settings_;
  const std::vector<NewClass>& classes_;
  ModelSpec source_;
  std::shared_ptr<const CostModel> roofline_, measured_;  // measured_: null if nothing of it can be here
  Session session_;
  std::shared_ptr<const Graph> fine_, units_;
  std::vector<std::vector<OpId>> parts_;   // [unit of units_] units of fine_
  std::vector<std::vector<OpId>> blocks_;  // [block] units of units_
};

Status set_slos(const NewFleetSettings& settings, Fleet& fleet) {
  std::vector<std::string> names;
  for (const auto& m : fleet.models) names.push_back(m.name);
  for (const auto& [name, us] : settings.slo_us_of)
    if (std::ranges::find(names, name) == names.end())
      return invalid_input("an SLO is for model " + quote_text(name) + ", which the fleet does not have" +
                           did_you_mean(name, names) + "; it has " + join_names(names));
  for (auto& m : fleet.models) {
    const auto own = settings.slo_us_of.find(m.name);
    m.slo_us = own != settings.slo_us_of.end() ? own->second : settings.slo_us;
    if (!(m.slo_us > 0))
      return invalid_input("model " + quote_text(m.name) +
                           " has no SLO; give one for it, or one for all models");
    m.margin_us = settings.margin * m.slo_us;
  }
  return {};
}

}  // namespace

Result<Fleet> new_fleet(const NewFleetSettings& settings, const Control& control) {
  if (settings.models.empty()) return invalid_input("a fleet needs a model");
  HEDDLE_ASSIGN_OR_RETURN(const auto classes, Classes(settings).read());
  Fleet fleet;
  fleet.name = settings.name;
  for (const auto& c : classes) fleet.classes.push_back(c.fleet);
  for (const ModelSpec& source : settings.models) {
    if (control.cancel.cancelled()) return cancelled_error("stopped before all models had times");
    HEDDLE_ASSIGN_OR_RETURN(auto model, NewModel(settings, classes, source).make());
    fleet.models.push_back(std::move(model));
  }
  HEDDLE_RETURN_IF_ERROR(set_slos(settings, fleet));
  HEDDLE_RETURN_IF_ERROR(check_fleet(fleet));
  FleetPlanOptions options;
  options.deadline = control.deadline();
  const auto rates = np_rates(fleet, options);
  if (rates.ok()) {
    HEDDLE_RETURN_IF_ERROR(set_estimated_rates(fleet, *rates));
  } else if (rates.error().code() != Code::kInfeasible) {
    return rates.error();
  }
  return fleet;
}

}  // namespace heddle
