// heddle fleet new: a fleet file for hardware that is not here.
#include <cmath>
#include <filesystem>

#include "fleet_verbs.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/fleet_file_text.h"
#include "heddle/report/fleet_plan_text.h"
#include "heddle/session/fleet_new.h"

namespace heddle::cli {
namespace {

struct NewFlags {
  std::string devices, models, cluster = "preset:local", precision = "f32", store;
  std::vector<std::string> slos;
  FleetCutFlags cutting;
  int64_t batches = 8, share_levels = 1;
  double margin = 0.4, nic_bytes_per_s = 25e9 / 8;
};

// Commas separate models, and the parameters of a zoo model.
std::vector<std::string> split_models(const std::string& text) {
  std::vector<std::string> models;
  for (const auto& part : split_list(text)) {
    if (!models.empty() && models.back().starts_with("zoo:") && part.find('=') != std::string::npos)
      models.back() += "," + part;
    else
      models.push_back(part);
  }
  return models;
}

Status read_slos(const std::vector<std::string>& texts, NewFleetSettings& settings) {
  for (const auto& list : texts) {
    for (const auto& text : split_list(list)) {
      const auto equals = text.rfind('=');
      const auto seconds = parse_seconds(equals == std::string::npos ? text : text.substr(equals + 1));
      if (!seconds || !(*seconds > 0) || equals == 0)
        return invalid_input("--slo " + text + ": expected a time such as 50ms, or MODEL=50ms");
      if (equals == std::string::npos)
        settings.slo_us = 1e6 * *seconds;
      else
        settings.slo_us_of[text.substr(0, equals)] = 1e6 * *seconds;
    }
  }
  if (texts.empty())
    return invalid_input("fleet new needs an SLO: --slo 50ms for all models, or --slo MODEL=50ms");
  return {};
}

std::vector<std::pair<std::string, Precision>> precisions() {
  std::vector<std::pair<std::string, Precision>> names;
  for (const auto p : {Precision::kF32, Precision::kTf32, Precision::kBf16, Precision::kFp16})
    names.emplace_back(precision_name(p), p);
  return names;
}

Result<NewFleetSettings> settings_of(const NewFlags& o) {
  NewFleetSettings settings;
  for (const auto& text : split_list(o.devices)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto device, assignment("--devices", text));
    if (device.second < 1 || device.second > static_cast<double>(kMaxFleetDevices) ||
        device.second != std::floor(device.second))
      return invalid_input("--devices " + text + ": expected CLASS=N with a whole number from 1 to " +
                           std::to_string(kMaxFleetDevices));
    settings.devices.emplace_back(device.first, static_cast<int64_t>(device.second));
  }
  if (settings.devices.empty()) return invalid_input("fleet new needs devices: --devices L4=25,P4=75");
  const auto models = split_models(o.models);
  if (models.empty()) return invalid_input("fleet new needs models: --models a.onnx,zoo:resnet-50");
  HEDDLE_RETURN_IF_ERROR(read_slos(o.slos, settings));
  HEDDLE_ASSIGN_OR_RETURN(settings.models, o.cutting.sources(models));
  HEDDLE_ASSIGN_OR_RETURN(settings.cutting, o.cutting.settings());
  if (o.cluster != "preset:local") {
    HEDDLE_ASSIGN_OR_RETURN(settings.cluster, open_cluster(o.cluster));
  }
  HEDDLE_ASSIGN_OR_RETURN(settings.precision,
                          named_value<Precision>("--precision", o.precision, precisions()));
  settings.name = std::filesystem::path(settings.cutting.output).stem().string();
  settings.margin = o.margin;
  settings.batches = static_cast<int>(o.batches);
  settings.share_levels = static_cast<int>(o.share_levels);
  settings.nic_bytes_per_s = o.nic_bytes_per_s;
  settings.store = o.store;
  return settings;
}

Result<int> run_fleet_new(const NewFlags& o, const Invocation& invocation) {
  if (o.cutting.output.empty()) return invalid_input("fleet new needs -o FILE.json or FILE.yaml");
  HEDDLE_RETURN_IF_ERROR(check_output(o.cutting.output));
  HEDDLE_ASSIGN_OR_RETURN(const auto settings, settings_of(o));
  HEDDLE_ASSIGN_OR_RETURN(const Fleet fleet, new_fleet(settings, invocation));
  HEDDLE_RETURN_IF_ERROR(write_fleet(o.cutting.output, fleet));
  const std::string& path = o.cutting.output;
  show_result(
      invocation, {{"output", path}, {"models", fleet_models_json(fleet)}, {"times", times_text(fleet)}},
      fmt::format("{}{}{} is written: set weights and prices there; `heddle fleet plan {}` plans it\n",
                  new_fleet_table(fleet, o.batches), times_line(fleet), path, path));
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_new(Command& command) {
  auto o = std::make_shared<NewFlags>();
  command.option("--devices", o->devices,
                 "CLASS=N,...: classes of the catalogue, or of --cluster, with their counts");
  command.option("--models", o->models, ".onnx files and zoo:NAME, comma-separated");
  command.list("--slo", o->slos, "50ms for all models, MODEL=50ms for one (repeatable)");
  command.option("--cluster", o->cluster,
                 "file or preset with further classes (default preset:local, this machine)");
  command.option("--precision", o->precision,
                 "arithmetic of the catalogue's classes: f32 (default), tf32, bf16 or fp16");
  command.option("--batches", o->batches, "batch sizes 1 to N (default 8)", 1, kMaxFleetBatch);
  command.option("--share-levels", o->share_levels,
                 "also shares 1/2 to 1/N of devices, at batch sizes up to the N-th part (default 1)", 1,
                 kMaxShare);
  o->cutting.declare(command);
  command.option("--margin", o->margin, "part of the SLO that planning keeps free (default 0.4)", 0, 0.99);
  command.bandwidth("--nic", o->nic_bytes_per_s, "network of each server (default 25Gbit/s)", 1, 1e15);
  command.option("--store", o->store, "profile store file (default: the user's cache)");
  return [o](const Invocation& invocation) { return run_fleet_new(*o, invocation); };
}

}  // namespace heddle::cli
