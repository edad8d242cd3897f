// heddle fleet profile: blocks of models measured on this machine's devices at several batch sizes, as a
// fleet file.
#include <fmt/format.h>

#include <optional>

#include "fleet_verbs.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/report/fleet_file_text.h"
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
  Json json = {{"output", o.cutting.output}, {"models", fleet_models_json(fleet)}};
  if (chosen) json["budget"] = fleet_precision_json(*chosen);
  const std::string other = o.cluster == "preset:local" ? "" : " --cluster " + o.cluster;
  show_result(invocation, json,
              fmt::format("{}{}{} is written: set counts, SLOs, weights, prices and further classes there;\n"
                          "`heddle serve {}{}` runs its models on the devices that it names\n",
                          measured_fleet_table(fleet, o.batches), chosen ? fleet_precision_text(*chosen) : "",
                          o.cutting.output, o.cutting.output, other));
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
