// heddle inspect: a model's structure, sizes, FLOPs and cut points.

#include "heddle/base/json.h"
#include "heddle/report/model_text.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct InspectOptions {
  ModelFlags model;
  int64_t top = 10;
};

Result<int> run_inspect(const InspectOptions& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto source, o.model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(source));
  show_notes(loaded, invocation);
  show_result(invocation, model_json(loaded), model_text(loaded, static_cast<size_t>(o.top)));
  return kExitDone;
}

}  // namespace

RunFn setup_inspect(Command& command) {
  auto o = std::make_shared<InspectOptions>();
  o->model.declare(command);
  command.option("--top", o->top, "rows per table (default 10)", 1, 100000);
  return [o](const Invocation& invocation) { return run_inspect(*o, invocation); };
}

}  // namespace heddle::cli
