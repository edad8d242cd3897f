// Which models a server is to serve: files, or a repository of the form MODEL/VERSION/model.onnx.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"
#include "heddle/plan/problem.h"
#include "heddle/serve/shape_buckets.h"

namespace heddle {

struct ModelSettings {
  std::map<std::string, Shape> shapes;                // of inputs with dynamic dimensions beside the batch
  std::map<std::string, std::vector<double>> values;  // of inputs that are constants (ImportOptions::values)
  // Inputs that take an output of the request before in its session: input and output.
  std::vector<std::pair<std::string, std::string>> state;
  double session_idle_us = 60e6;  // a session without a request for so long ends
  VaryingSettings varying;        // of inputs whose shape varies from request to request
  double slo_us = 0;              // from arrival to answer; 0: ten times one request's time, at least 1 s
  int max_batch = 8;              // 1 .. 64
  double weight = 1;              // share of the load that the plan is made for
  int priority_levels = 0, default_priority = 0;  // as ServedModel has them
};
inline constexpr int kMostServedBatch = 64;
inline constexpr double kMostSessionIdle_us = 168 * 3600e6;

struct ModelSource {
  std::string name, version;
  std::string path;  // of the model's file
  ModelSettings settings;
  std::string plan;  // a plan file, which says where the model runs; empty: it is planned for here
};

// What a plan's model is served as: the name of its file without suffix, else its graph's, in characters that
// a URL may have.
std::string served_name(const Problem& problem);

// Each path is a model file (its name without suffix is the model's, version "1") or the folder of a
// repository: each sub-folder is a model, its sub-folders with whole numbers as names its versions, of which
// the newest is taken; the model is model.onnx there (or model.xml). Beside the versions, Triton's config.pbtxt
// may set the largest batch, the inputs' dims, the levels of priority and the state of sessions, and a file
// config.json, which has the last word, {"shapes": {"x": [1, 3, 48, 320]}, "values": {"size": [640, 640]},
// "slo": "50ms", "max_batch": 4, "weight": 2, "state": {"h": "hn"}, "session_idle": "60s"}. A file that ends in .json
// is a plan file, whose model is served as the plan says; it has the machine for itself. Errors: nothing there, two
// models of one name, names with other characters than letters, digits and "._-", settings out of range, a plan among
// others. In the order of the paths, then by name.
Result<std::vector<ModelSource>> find_models(std::span<const std::string> paths,
                                             const ModelSettings& defaults);

}  // namespace heddle
