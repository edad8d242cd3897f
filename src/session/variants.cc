// Which engines and precisions the devices of a problem have.
#include "heddle/cluster/variants.h"

#include <algorithm>

#include "heddle/base/spelling.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/runtime/backend.h"
#include "heddle/session/clusters.h"

namespace heddle {
namespace {

Status check_engine(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& backend : backend_registry()) {
    if (backend->computes()) known.push_back(backend->name());
  }
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return invalid_input("engine " + name + ": this program has no such engine" + did_you_mean(name, known) +
                       "; it has " + join_names(known));
}

Status check_budget(const VariantSettings& settings) {
  if (!settings.budget) return {};
  if (!settings.precisions.empty())
    return invalid_input("a budget chooses among all types of the devices; give no precision beside it");
  if (settings.budget->agreement >= 0 && settings.budget->agreement <= 1 && settings.budget->mean >= 0)
    return {};
  return invalid_input(
      "a budget's agreement is a share of decisions, from 0 to 1, and its mean error is at least 0");
}

Status check_precision_name(const std::string& name) {
  if (name == "auto" || precision_from_name(name)) return {};
  std::vector<std::string> known;
  for (const auto p : {Precision::kF32, Precision::kTf32, Precision::kBf16, Precision::kFp16})
    known.emplace_back(precision_name(p));
  known.emplace_back("auto");
  return invalid_input("precision " + name + ": expected " + join_names(known) + did_you_mean(name, known));
}

// Other hardware has a name for one engine only.
bool takes_any_engine(const Device& device) {
  return device.kind == DeviceKind::kCpu && !device.cores.empty();
}

// A device whose engine and precision nobody has chosen yet.
bool is_open(const Cluster& cluster, DeviceId id) {
  const Device& device = cluster.device(id);
  const Backend* backend = find_backend(device.backend);
  return backend != nullptr && backend->computes() && !device.target.empty() &&
         device.precision == Precision::kF32 && !device.fixed_precision && cluster.variants(id).size() == 1;
}

// Hardware that is not here, whose precision the cluster file does not state.
bool is_absent(const Cluster& cluster, DeviceId id) {
  const Device& device = cluster.device(id);
  return device.target.empty() && device.peak_flops > 0 && !device.fixed_precision &&
         cluster.variants(id).size() == 1;
}

Result<std::vector<std::string>> engines_for(const Device& device, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return std::vector{device.backend};
  const bool any = takes_any_engine(device);
  std::vector<std::string> engines;
  for (const auto& engine : wanted) {
    const bool twice = std::find(engines.begin(), engines.end(), engine) != engines.end();
    if (!twice && (any || engine == device.backend)) engines.push_back(engine);
  }
  if (engines.empty())
    return invalid_input("device '" + device.name + "' runs with " + device.backend +
                         " only, which is not among the engines; add it or leave the device out");
  return engines;
}

// The engine's variants in the wanted types, as far as the device has them.
Result<std::vector<Variant>> variants_of(const Device& device, const std::string& engine,
                                         const VariantSettings& settings) {
  HEDDLE_ASSIGN_OR_RETURN(const auto has, find_backend(engine)->precisions(as_variant(device, {engine})));
  std::vector<std::string> wanted = settings.precisions;
  if (wanted.empty() && settings.budget) {
    // float32 first, so that names tell the narrower types.
    wanted = {precision_name(Precision::kF32)};
    for (const Precision precision : has) wanted.emplace_back(precision_name(precision));
  }
  if (wanted.empty()) wanted = {"auto"};
  std::vector<Variant> variants;
  for (const auto& name : wanted) {
    const Precision precision = name == "auto" ? has.front() : *precision_from_name(name);
    const Variant variant{engine, precision};
    if (std::find(has.begin(), has.end(), precision) == has.end() ||
        std::find(variants.begin(), variants.end(), variant) != variants.end())
      continue;
    variants.push_back(variant);
  }
  return variants;
}

// An absent accelerator or socket has one type in a plan.
Result<std::vector<Variant>> absent_variant(const Device& device, const std::vector<std::string>& wanted) {
  const auto refused = [&](const std::string& why) {
    return invalid_input("precision " + wanted[0] + ": device '" + device.name + "' " + why);
  };
  if (wanted.size() > 1)
    return refused("is not here, and such a device has one type in a plan; give one precision");
  const auto precision = precision_from_name(wanted[0]);
  if (!precision || *precision == device.precision) return std::vector<Variant>{};  // auto: as the file says
  const CatalogueDevice* row = rated_by_catalogue(device);
  if (row == nullptr)
    return refused(std::string("has a rate of its own, for ") + precision_name(device.precision) +
                   "; give its 'precision' and 'flops' in the cluster file");
  if (!computes_in(*row, *precision))
    return refused(std::string("does not compute in ") + wanted[0] + ": " + row->name +
                   " has no such rate in the catalogue; choose another precision or leave the device out");
  return std::vector{Variant{device.backend, *precision}};
}

Status check_all_there(const Device& device, const std::vector<std::string>& engines,
                       const std::vector<std::string>& wanted, const std::vector<Variant>& variants) {
  for (const auto& name : wanted) {
    const auto precision = precision_from_name(name);
    if (!precision || std::any_of(variants.begin(), variants.end(),
                                  [&](const Variant& v) { return v.precision == *precision; }))
      continue;
    return invalid_input("precision " + name + ": device '" + device.name + "' does not compute in " + name +
                         " in hardware, according to " + join_names(engines) +
                         "; choose another precision or leave the device out");
  }
  return {};
}

}  // namespace

Result<std::vector<DeviceEngine>> engines_of(const Cluster& cluster) {
  std::vector<DeviceEngine> list;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const Device& device = cluster.devices()[d];
    if (cluster.is_variant(DeviceId(d)) || device.target.empty()) continue;
    for (const auto& backend : backend_registry()) {
      const bool runs = backend->name() == device.backend || takes_any_engine(device);
      if (!backend->computes() || !runs) continue;
      HEDDLE_ASSIGN_OR_RETURN(auto has, backend->precisions(as_variant(device, {backend->name()})));
      list.push_back({DeviceId(d), backend->name(), std::move(has)});
    }
  }
  return list;
}

Result<std::shared_ptr<const Cluster>> choose_variants(std::shared_ptr<const Cluster> cluster,
                                                       const VariantSettings& settings,
                                                       const std::vector<std::string>& only) {
  for (const auto& engine : settings.engines) HEDDLE_RETURN_IF_ERROR(check_engine(engine));
  for (const auto& name : settings.precisions) HEDDLE_RETURN_IF_ERROR(check_precision_name(name));
  HEDDLE_RETURN_IF_ERROR(check_budget(settings));
  std::vector<std::vector<Variant>> by_device(cluster->num_devices());
  bool changes = false;
  for (size_t d = 0; d < cluster->num_devices(); ++d) {
    const Device& device = cluster->devices()[d];
    const bool named = only.empty() || std::find_if(only.begin(), only.end(), [&](const std::string& name) {
                                         return name == device.name || hardware_name(name) == device.name;
                                       }) != only.end();
    if (!named) continue;
    if (is_absent(*cluster, DeviceId(d)) && !settings.precisions.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(by_device[d], absent_variant(device, settings.precisions));
      changes = changes || !by_device[d].empty();
      continue;
    }
    if (!is_open(*cluster, DeviceId(d))) continue;
    HEDDLE_ASSIGN_OR_RETURN(const auto engines, engines_for(device, settings.engines));
    for (const auto& engine : engines) {
      HEDDLE_ASSIGN_OR_RETURN(const auto more, variants_of(device, engine, settings));
      by_device[d].insert(by_device[d].end(), more.begin(), more.end());
    }
    HEDDLE_RETURN_IF_ERROR(check_all_there(device, engines, settings.precisions, by_device[d]));
    if (by_device[d].size() > 1 && !takes_any_engine(device)) {
      std::vector<std::string> types;
      for (const Variant& variant : by_device[d]) types.emplace_back(precision_name(variant.precision));
      return invalid_input("device '" + device.name +
                           "' has one type in a plan, since it is no set of cores; choose one of " +
                           join_names(types) + " for it, or leave it out");
    }
    changes = changes || by_device[d] != std::vector{variant_of(device)};
  }
  if (!changes) return cluster;
  return with_variants(*cluster, by_device);
}

}  // namespace heddle
