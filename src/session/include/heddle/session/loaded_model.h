// What is planned: a model's file, a graph's file, or a network of the zoo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/ios_graph.h"
#include "heddle/graph/model.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct ModelSpec {
  // .onnx and what else OpenVINO reads; a graph (.json: Heddle's, IOS's, or a simulation instance of HIOS);
  // a file that holds a whole problem (heddle/plan/problem_file.h); or zoo:NAME[,key=value...].
  std::string path;
  // Of models only: a graph has its shapes.
  ImportOptions import;
};

struct LoadedModel {
  std::string name;
  std::shared_ptr<const Model> model;  // null for graph files and zoo graphs: they can be planned but not run
  std::shared_ptr<const Graph> graph;  // the finest graph
  // The same model at batch 1 where the model is loaded at a larger batch: profiles of all batch sizes share
  // its signatures, so that times between measured batch sizes can be interpolated.
  std::shared_ptr<const Model> base;
  bool ios = false;              // the file has the form of heddle/graph/ios_graph.h...
  std::vector<IosStage> stages;  // ...and may bring a schedule
  bool simulation = false;       // it is a simulation instance (heddle/plan/hios_workload.h)
  bool given = false;            // the file holds a whole problem (heddle/plan/problem_file.h)
};

// Untrusted input: errors name the file, the place and what was expected. Invalid input where `import` says
// something of a graph; not found where there is no such file.
Result<LoadedModel> load_model(const ModelSpec& source);

// The model behind a problem, as it was planned: null where the problem has none, invalid input where the
// file has other content now. `plan` names where the problem is from, for messages.
Result<std::shared_ptr<const Model>> load_model_of(const Problem& problem, const std::string& plan);

// Under which the model's segments are filed in the profile store. `loaded.model` is there.
SignatureFn signature_of(const LoadedModel& loaded);

// load_cluster(), and for preset:local also the devices beside the CPU that OpenVINO and libtorch find.
Result<std::shared_ptr<const Cluster>> open_cluster(const std::string& file_or_preset);

}  // namespace heddle
