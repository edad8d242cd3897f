// Whole models served on this machine: loaded, measured quickly, planned on its core sets, and cut over when
// one is loaded or unloaded. Or one plan file, served as it says; loading it again takes the file's new
// content.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/runtime/run.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/model_source.h"
#include "heddle/serve/opened_plan.h"
#include "heddle/session/clusters.h"

namespace heddle {

// Which arrangement of models on the devices is taken.
enum class LocalChoice {
  kGoodput,  // that serves most in time by simulation, with devices of each model's own or shared by all
  kRate,     // that with the greatest least rate over weight, with devices of each model's own
};

struct LocalServerOptions {
  LivePlaneOptions plane = {.scheduler = SchedulerKind::kReactive};
  std::shared_ptr<const Cluster> cluster;  // whose devices compute; null: this machine's, as it is found
  // Devices that may be used; empty: all of these.
  std::vector<std::string> devices;
  // The type that devices compute in: auto (empty), one of their types, or with a budget auto for models that keep to
  // it and float32 for the others.
  VariantSettings variants;
  CalibrationOptions calibration;  // on which the error of narrower types is measured
  DecisionRules decisions;
  double measure_s = .1;  // of each model, target and batch size
  LocalChoice choice = LocalChoice::kGoodput;
  // Compiles each model for smaller sets of a device's cores, too, and changes between them by the measured times.
  bool adapt = false;
  double watch_every_s = 10;  // between looks whether models run as measured; what is found is logged
  int in_flight = 0;          // of a plan file: requests at once; 0: as many as keep its devices busy
  const OpenedPlan* on_ranks = nullptr;  // the plan file's plan, opened on several ranks; outlives the server
  Deadline deadline;                     // of create()
  ProgressSink* progress = nullptr;
};

class LocalServer {
 public:
  // Loads all models and puts them to work in `service`, which gets a repository and must outlive this
  // object. Errors: find_models()'s and Model::load()'s, no device, an SLO that no device meets.
  static Result<std::unique_ptr<LocalServer>> create(InferService& service, std::vector<ModelSource> sources,
                                                     const LocalServerOptions& options);
  virtual ~LocalServer() = default;  // waits for a load that is under way

  // Both cut over and wait for it. Unknown names are kNotFound; loading a loaded model reads it again. A plan
  // on several ranks cannot be loaded (kUnsupported).
  virtual Status load(const std::string& model) = 0;
  virtual Status unload(const std::string& model) = 0;
  // Loads and unloads that clients asked for and that have not begun fail, and so do later ones. Does not wait.
  virtual void stop() = 0;
};

}  // namespace heddle
