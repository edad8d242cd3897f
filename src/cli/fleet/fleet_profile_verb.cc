// heddle fleet profile: blocks of models measured on this machine's devices at several batch sizes, as a
// fleet file.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fleet_verbs.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"
#include "model/model_flags.h"

namespace heddle::cli {
namespace {

struct ProfileFlags {
  std::string models, cluster = "preset:local", store, engines, precision, budget;
  CalibrationFlags calibration;
  FleetCutFlags cutting;
  int64_t batches = 4, share_levels = 1;
  double slo_factor = 5, margin = 0.4;
};

Result<FleetProfileSettings> settings_of(const ProfileFlags& o) {
  FleetProfileSettings settings;
  HEDDLE_ASSIGN_OR_RETURN(settings.cutting, o.cutting.settings());
  HEDDLE_ASSIGN_OR_RETURN(settings.models, o.cutting.sources(split_list(o.models)));
  if (o.cluster != "preset:local") {
    HEDDLE_ASSIGN_OR_RETURN(settings.cluster, open_cluster(o.cluster));
  }
  HEDDLE_ASSIGN_OR_RETURN(settings.variants, variant_settings(o.engines, o.precision, o.budget));
  HEDDLE_RETURN_IF_ERROR(o.calibration.settings(settings.calibration, settings.decisions));
  settings.batches = static_cast<int>(o.batches);
  settings.share_levels = static_cast<int>(o.share_levels);
  settings.slo_factor = o.slo_factor;
  settings.margin = o.margin;
  settings.store = o.store;
  return settings;
}

// What the budget has decided, one line for each model.
std::string precision_text(const FleetPrecision& chosen) {
  if (chosen.models.empty()) return "all classes compute in f32, the only type that they have\n";
  const bool all = std::ranges::all_of(chosen.models, &ModelTypeError::allowed);
  std::string text = fmt::format("all classes compute in {}; the budget\n",
                                 precision_name(all ? chosen.narrow : Precision::kF32));
  for (const ModelTypeError& m : chosen.models)
    text += fmt::format("  {} {} in {}: {:.4g} % of decisions as in f32, mean error {:.2g} of the range\n",
                        m.allowed ? "allows" : "forbids", m.model, precision_name(chosen.narrow),
                        100 * m.agreement, m.mean);
  return text;
}

Json precision_json(const FleetPrecision& chosen) {
  Json list = Json::array();
  for (const ModelTypeError& m : chosen.models)
    list.push_back({{"model", m.model},
                    {"type", precision_name(chosen.narrow)},
                    {"agreement", m.agreement},
                    {"mean", m.mean},
                    {"allowed", m.allowed}});
  return list;
}

Result<int> run_fleet_profile(const ProfileFlags& o, const Invocation& invocation) {
  if (o.cutting.output.empty()) return invalid_input("fleet profile needs -o FILE.json or FILE.yaml");
  HEDDLE_RETURN_IF_ERROR(check_output(o.cutting.output));
  HEDDLE_ASSIGN_OR_RETURN(auto settings, settings_of(o));
  std::optional<FleetPrecision> chosen;
  if (settings.variants.budget) {
    HEDDLE_ASSIGN_OR_RETURN(chosen, under_budget(settings, invocation));
    settings.variants = chosen->variants;
  }
  HEDDLE_ASSIGN_OR_RETURN(const Fleet fleet, profile_fleet(settings, invocation));
  HEDDLE_RETURN_IF_ERROR(write_fleet(o.cutting.output, fleet));
  if (invocation.progress) invocation.progress->finish();
  if (invocation.json) {
    Json names = Json::array();
    for (const auto& m : fleet.models)
      names.push_back({{"model", m.name}, {"blocks", m.blocks}, {"slo_us", m.slo_us}});
    Json json = {{"output", o.cutting.output}, {"models", names}};
    if (chosen) json["budget"] = precision_json(*chosen);
    show_json(invocation, json);
    return kExitDone;
  }
  TextTable table({{"model"},
                   {"blocks", TextTable::Align::kRight},
                   {"class"},
                   {"batch 1", TextTable::Align::kRight},
                   {"batch " + std::to_string(o.batches), TextTable::Align::kRight},
                   {"shares"},
                   {"SLO", TextTable::Align::kRight}});
  for (const auto& m : fleet.models)
    for (size_t c = 0; c < fleet.classes.size(); ++c) {
      const auto sum = [&](const std::vector<double>& times) {
        double total = 0;
        for (const double t : times) total += t;
        return format_us(total);
      };
      // The smallest share at batch 1 beside the whole device.
      const auto v = m.latency_us[c].size();
      const auto shares =
          v < 2 ? "1/1" : "1/" + std::to_string(v) + ": " + sum(m.latency_us[c].back().front());
      table.add_row({m.name, std::to_string(m.blocks), fleet.classes[c].name, sum(m.latency_us[c][0].front()),
                     sum(m.latency_us[c][0].back()), shares, format_us(m.slo_us)});
    }
  print(
      "{}{}{} is written: set counts, SLOs, weights, prices and further classes there;\n"
      "`heddle serve` runs its models on the devices that it names\n",
      table.to_string(), chosen ? precision_text(*chosen) : "", o.cutting.output);
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_profile(Command& command) {
  auto o = std::make_shared<ProfileFlags>();
  command.positional("MODELS", o->models, ".onnx files, comma-separated");
  command.option("--cluster", o->cluster,
                 "cluster file, or preset:NAME (default preset:local, this machine)");
  command.option("--batches", o->batches, "measure batch sizes 1 to N (default 4)", 1, kMaxFleetBatch);
  command.option(
      "--share-levels", o->share_levels,
      "measure also shares 1/2 to 1/N of devices with so many cores or parts, at batch sizes up to the N-th "
      "part, while all shares are busy (default 1: whole devices)",
      1, kMaxShare);
  o->cutting.declare(command);
  command.option("--slo-factor", o->slo_factor, "SLO as a multiple of the fastest class's time (default 5)",
                 1, 1e6);
  command.option("--margin", o->margin, "part of the SLO that planning keeps free (default 0.4)", 0, 0.99);
  declare_variants(command, o->engines, o->precision);
  declare_budget(command, o->budget);
  o->calibration.declare(command);
  command.option("--store", o->store, "profile store file (default: the user's cache)");
  return [o](const Invocation& invocation) { return run_fleet_profile(*o, invocation); };
}

}  // namespace heddle::cli
