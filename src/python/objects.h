// What the Python classes hold.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>

#include "heddle/cluster/cluster.h"
#include "heddle/planners/planner.h"
#include "heddle/session/compiled_plan.h"
#include "heddle/session/session.h"

namespace heddle::python {

struct PyModel {
  ModelSpec source;
  LoadedModel loaded;
};

struct PyCluster {
  std::shared_ptr<const Cluster> cluster;
};

struct PyCosts {
  std::shared_ptr<const PyModel> model;
  ProblemSettings settings;  // of later sessions of the same model
  Session session;
};

struct PyPlan {
  ProblemSettings settings;
  SearchSettings search;
  Session session;  // with the costs under which the plan was made
  PlanResult result;
  // The model of a plan from a file, once model_of() has loaded it.
  struct LoadedLater {
    std::mutex mutex;
    std::shared_ptr<const Model> model;  // guarded by the mutex
  };
  std::shared_ptr<LoadedLater> later = std::make_shared<LoadedLater>();

  const Problem& problem() const { return session.problem; }
};

struct PyRun {
  std::shared_ptr<const PyPlan> plan;
  RunRecord record;
  std::vector<TensorValue> outputs;
};

// A CompiledPlan with the plan that it is of; close() gives its memory and threads back.
struct PyCompiled {
  std::shared_ptr<const PyPlan> plan;
  std::shared_ptr<const Model> model;  // null: the plan is of a graph
  std::shared_ptr<CompiledPlan> compiled;
};
std::shared_ptr<PyRun> run_request(const PyCompiled& compiled, const nanobind::object& inputs);

// The model behind the plan, loaded on the first call; null if there is none. Thread-safe.
Result<std::shared_ptr<const Model>> model_of(const PyPlan& plan);

// A DataFrame of dictionaries, one for each row.
nanobind::object data_frame(const nanobind::list& rows);

nanobind::object to_array(const TensorValue& value);
// In the order of the graph's inputs. The views refer to memory of `keep`.
std::vector<TensorView> to_views(const Graph& graph, const nanobind::object& inputs, nanobind::list& keep);

void bind_model(nanobind::module_& module);
void bind_cluster(nanobind::module_& module);
void bind_costs(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_planning(nanobind::module_& module);
void bind_precision(nanobind::module_& module);
void bind_grade(nanobind::module_& module);
void bind_running(nanobind::module_& module);
void bind_sessions(nanobind::module_& module);
void bind_fleet(nanobind::module_& module);
void bind_buckets(nanobind::module_& module);

}  // namespace heddle::python
