// The model files that benchmark suites run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/session/loaded_model.h"
#include "rows.h"

namespace heddle::bench {

struct BenchModel {
  std::string name, path;
  std::map<std::string, Shape> shapes;  // usual ones, for models that leave theirs open
  ModelSpec source() const {
    ModelSpec source{.path = path, .import = {}};
    source.import.shapes = shapes;
    return source;
  }
};

// Those of --models, else of the installed wheels.
Result<std::vector<BenchModel>> find_models(const BenchOptions& options);

}  // namespace heddle::bench
