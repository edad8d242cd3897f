// A fleet file's contents for hardware that is not here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/session/fleet_profile.h"

namespace heddle {

struct NewFleetSettings {
  std::string name;
  // Classes with their counts: of the catalogue (heddle/cluster/catalogue.h), else classes of devices of `cluster`.
  std::vector<std::pair<std::string, int64_t>> devices;
  std::shared_ptr<const Cluster> cluster;  // null: this machine
  Precision precision = Precision::kF32;   // in which classes of the catalogue compute
  std::vector<ModelSpec> models;           // real models, networks of the zoo, or graphs without times
  double slo_us = 0;                       // of models that slo_us_of does not name; 0: none
  std::map<std::string, double> slo_us_of;
  double margin = 0.4;  // the part of each SLO that planning keeps free
  BlockSettings cutting;
  int batches = 8;                    // largest batch size
  int share_levels = 1;               // also shares 1/2 to 1/N, at batch sizes up to the N-th part
  double nic_bytes_per_s = 25e9 / 8;  // of each server; a device's link to its host may be slower
  std::string store;                  // the profile store's file; empty: ProfileStore::default_path()
};

// Times come from the profile store if it has measurements of a class that is here: those of a block, else those of its
// units; at batch sizes and shares without any, scaled by the roofline. All others are estimates of the roofline. A
// batch is the graph scaled (heddle/graph/batch.h). The rates at which batches fill are those of an np plan, if there
// is one. Invalid input names the class or model: an unknown class, one without peak rates, a model without SLO, a
// model that brings times of its own or that does not fit into the memory of the devices.
Result<Fleet> new_fleet(const NewFleetSettings& settings, const Control& control);

}  // namespace heddle
