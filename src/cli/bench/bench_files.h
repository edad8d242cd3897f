// The model files that benchmark suites run.
#pragma once

#include <string>
#include <vector>

#include "bench.h"

namespace heddle::cli {

struct BenchModel {
  std::string name, path;
  std::vector<std::string> shapes;  // usual ones, for models that leave theirs open
};

// Those of --models, else of the installed wheels.
Result<std::vector<BenchModel>> find_models(const BenchOptions& options);

}  // namespace heddle::cli
