// The Python module heddle._core: the pipeline of heddle/session/ for Python (docs/python.md).
#include <nanobind/nanobind.h>

#include "background.h"
#include "heddle/base/version.h"
#include "objects.h"

NB_MODULE(_core, module) {
  using namespace heddle::python;
  module.def(
      "version", [] { return heddle::kVersion; }, "Of Heddle: \"0.1.0\".");
  bind_progress(module);
  bind_model(module);
  bind_cluster(module);
  bind_costs(module);
  bind_plan(module);
  bind_precision(module);
  bind_planning(module);
  bind_grade(module);
  bind_running(module);
  bind_sessions(module);
  bind_fleet(module);
  bind_buckets(module);
}
