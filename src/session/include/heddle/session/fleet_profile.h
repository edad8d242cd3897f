// A fleet file's contents from measurements on this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/prepartition.h"
#include "heddle/runtime/run.h"
#include "heddle/session/clusters.h"
#include "heddle/session/loaded_model.h"

namespace heddle {

// How the models of a fleet file are cut.
struct BlockSettings {
  int blocks = 10;  // of each model
  PrepartitionMethod method = PrepartitionMethod::kBalanced;
  bool fp16_cuts = false;  // feature maps of float32 cross cuts as float16
  std::string output;      // the fleet file's path: paths of models are relative to its folder
};

struct FleetProfileSettings {
  std::vector<ModelSpec> models;           // real models; their batch size is ignored
  std::shared_ptr<const Cluster> cluster;  // null: this machine, with every device that is found
  VariantSettings variants;                // a budget: see under_budget()
  CalibrationOptions calibration;          // of a budget; a model may have a folder of its name inside
  DecisionRules decisions;
  BlockSettings cutting;
  int batches = 4;        // largest batch size that is measured
  int share_levels = 1;   // also shares 1/2 to 1/N of devices, at batch sizes up to the N-th part
  double slo_factor = 5;  // SLO as a multiple of the fastest class's time
  double margin = 0.4;    // the part of the SLO that planning keeps free
  std::string store;      // the profile store's file; empty: ProfileStore::default_path()
};

// What the unsplit model's outputs lose in the devices' own type, against float32.
struct ModelTypeError {
  std::string model;
  double agreement = 1, mean = 0;
  bool allowed = true;
};
// The devices of a class have one type for all models: the engine's own if every model keeps to the budget in it, else
// float32.
struct FleetPrecision {
  VariantSettings variants;            // without a budget
  Precision narrow = Precision::kF32;  // the engine's own type
  std::vector<ModelTypeError> models;  // none if that is float32
};
// Infeasible, with the least error, if the cluster fixes a type in which a model does not keep to the budget.
Result<FleetPrecision> under_budget(const FleetProfileSettings& settings, const Control& control);

// Measures blocks of the models at several batch sizes on one device of each class; devices of one target are
// one class. Settings without a budget, which under_budget() replaces. Each measurement is stored at once, so that the
// same call continues after a cancellation, which is an error. Invalid input if nothing can be measured; unsupported
// if a model has other ops at another batch size.
Result<Fleet> profile_fleet(const FleetProfileSettings& settings, const Control& control);

}  // namespace heddle
