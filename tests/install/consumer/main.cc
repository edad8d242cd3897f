// Plans a network of the zoo on a preset cluster with CP-SAT, and calls each of the other libraries once.
#include <cstdio>

#include "heddle/fleet/fleet.h"
#include "heddle/planners/planner.h"
#include "heddle/serve/http_message.h"
#include "heddle/session/session.h"

namespace {

heddle::Result<double> plan() {
  const heddle::Control control;
  heddle::ProblemSettings settings;
  settings.measure = false;
  HEDDLE_ASSIGN_OR_RETURN(settings.cluster, heddle::open_cluster("preset:v100"));
  HEDDLE_ASSIGN_OR_RETURN(
      heddle::Session session,
      heddle::open_session({.path = "zoo:inception-v3", .import = {}}, settings, control));
  HEDDLE_ASSIGN_OR_RETURN(const heddle::PlanResult result,
                          heddle::make_plan(session, "cp-sat", {.time_limit_s = 1}, control));
  return result.value_us;
}

}  // namespace

int main() {
  const auto value = plan();
  if (!value.ok()) std::fprintf(stderr, "%s\n", value.error().to_string().c_str());
  std::printf("%s\n", value.ok() ? "planned" : "not planned");
  std::printf("%zu planners\n", heddle::planner_registry().size());
  std::printf("%s\n", heddle::read_fleet("none.yaml").ok() ? "a fleet" : "no fleet");
  std::printf("%s\n", heddle::read_http_head("GET / HTTP/1.1\r\n\r\n").ok() ? "a request" : "no request");
  return value.ok() ? 0 : 1;
}
