// Random workloads of papers for the tests of plan/ and planners/.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "heddle/base/json.h"
#include "heddle/base/random.h"
#include "heddle/plan/flow_workload.h"

namespace heddle::test {

// Set-up that cannot fail.
template <class T>
T made(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "test set-up: %s\n", result.error().to_string().c_str());
    std::abort();
  }
  return std::move(result).value();
}

// Times are whole microseconds; every tenth edge carries no data.
struct RandomFlows {
  int ops = 4, devices = 2;
  double edge_probability = 0.6;
  double memory = 1e9;  // of each device; ops take 0 to 5
};
inline Json random_flow_json(Random& random, const RandomFlows& shape) {
  Json json = {{"name", "random"}, {"units", {{"time", "us"}}}};
  json["devices"] = json["ops"] = json["edges"] = Json::array();
  for (int k = 0; k < shape.devices; ++k) json["devices"].push_back({{"id", k}, {"memory", shape.memory}});
  for (int v = 0; v < shape.ops; ++v) {
    Json times = Json::array();
    for (int k = 0; k < shape.devices; ++k) times.push_back(random.between(0, 9));
    json["ops"].push_back({{"id", v}, {"time", times}, {"memory", random.between(0, 5)}});
  }
  for (int a = 0; a < shape.ops; ++a) {
    for (int b = a + 1; b < shape.ops; ++b) {
      if (!random.chance(shape.edge_probability)) continue;
      Json edge = {{"src", a}, {"dst", b}, {"flow", nullptr}};
      if (!random.chance(0.1)) {
        edge["flow"] = shape.ops * a + b;
        Json rows = Json::array();
        for (int i = 0; i < shape.devices; ++i) {
          Json row = Json::array();
          for (int j = 0; j < shape.devices; ++j) row.push_back(i == j ? 0 : random.between(0, 6));
          rows.push_back(std::move(row));
        }
        edge["time"] = std::move(rows);
      }
      json["edges"].push_back(std::move(edge));
    }
  }
  return json;
}
inline Problem random_flow_problem(Random& random, const RandomFlows& shape) {
  return made(flow_workload_from_json(random_flow_json(random, shape))).problem;
}

// The public data's folder; one that is not there without HEDDLE_SHARED.
inline std::string public_data(const std::string& set) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  return std::string(shared != nullptr ? shared : "no-public-data") + "/data/" + set + "/";
}

}  // namespace heddle::test
