// Inputs of planning: a model's file, a graph's file, or a network of the zoo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/ios_graph.h"
#include "heddle/graph/model.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct ModelSpec {
  // A model (.onnx, or another format that OpenVINO reads); a graph (.json: Heddle's, IOS's, or a simulation
  // instance of HIOS); a file that holds a whole problem (heddle/plan/problem_file.h); or
  // zoo:NAME[,key=value...].
  std::string path;
  // For models only: a graph has its shapes.
  ImportOptions import;
};

struct LoadedModel {
  std::string name;
  std::shared_ptr<const Model> model;  // null for graph files and zoo graphs: they can be planned but not run
  std::shared_ptr<const Graph> graph;  // the finest graph
  // The same model at batch 1 if the model is loaded at a larger batch. Profiles of all batch sizes share its
  // signatures, so that times between measured batch sizes can be interpolated.
  std::shared_ptr<const Model> base;
  bool ios = false;              // the file has the form of heddle/graph/ios_graph.h...
  std::vector<IosStage> stages;  // ...and may bring a schedule
  bool simulation = false;       // it is a simulation instance (heddle/plan/hios_workload.h)
  bool given = false;            // the file holds a whole problem (heddle/plan/problem_file.h)
};

// Untrusted input: errors name the file, the place and what was expected. Invalid input if `import` has
// options for a graph; not found if there is no such file.
Result<LoadedModel> load_model(const ModelSpec& source);

// The model behind a problem, as it was planned: null if the problem has none, invalid input if the file's
// content has changed since. `plan` names the problem's source in messages.
Result<std::shared_ptr<const Model>> load_model_of(const Problem& problem, const std::string& plan);

// The keys of the model's segments in the profile store. `loaded.model` must not be null.
SignatureFn signature_of(const LoadedModel& loaded);

}  // namespace heddle
