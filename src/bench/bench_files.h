// The model files that benchmark suites run.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/control.h"
#include "heddle/session/loaded_model.h"
#include "rows.h"

namespace heddle::bench {

struct BenchModel {
  std::string name, path;
  std::string place;     // "3/12"
  ImportOptions import;  // usual sizes, for models that leave theirs open
  ModelSpec source() const { return {.path = path, .import = import}; }
};

// Calls `run(model)`, which appends to `rows`, for those of --models, else for those of the installed wheels, until one
// fails. Each is a whole instance.
Status for_each_model(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows,
                      const std::function<Status(const BenchModel&)>& run);

}  // namespace heddle::bench
