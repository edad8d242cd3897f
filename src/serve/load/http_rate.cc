#include "heddle/serve/http_rate.h"

#include <utility>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/load.h"
#include "heddle/serve/rest_api.h"

namespace heddle {
namespace {

constexpr size_t kInputBytes = 1024, kUnderWay = 32;
constexpr int kRound = 200;  // requests
constexpr double kMeasure_s = .2;
// A busy machine of two cores has carried three times as much (docs/measurements/operate.md).
constexpr double kSurelyCarried_per_s = 5000;

}  // namespace

Result<double> measured_http_rate(double seconds, const CancelToken& cancel) {
  Fleet fleet;
  fleet.name = "no time";
  fleet.classes = {{.name = "no time", .count = kUnderWay, .nic_bytes_per_s = 1e12}};
  FleetModel model;
  model.name = "nothing";
  model.blocks = 1;
  model.slo_us = 60e6;
  model.cut_bytes = {0, 0};
  model.latency_us = {{{{1.0}}}};
  fleet.models = {model};
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto", {}));
  HEDDLE_ASSIGN_OR_RETURN(auto generation, timed_generation(fleet, plan, {}));
  InferService service;
  service.serve(std::move(generation));
  HEDDLE_ASSIGN_OR_RETURN(const auto server, start_rest(service));
  LoadTarget target;
  target.port = server->port();
  HEDDLE_ASSIGN_OR_RETURN(const auto models,
                          load_models(target, {}, {.payload_bytes = kInputBytes, .shapes = {}, .seed = 1}));
  const std::vector<Arrival> at_once(kRound);
  LoadOptions options;
  options.max_connections = kUnderWay;
  options.cancel = cancel;
  double answered = 0, taken_s = 0;
  while (taken_s < seconds && !cancel.cancelled()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto round, run_load(target, models, at_once, options));
    answered += static_cast<double>(round.counted.total.in_time);
    taken_s += round.seconds;
  }
  server->stop(1);
  service.stop(1);
  if (cancel.cancelled()) return cancelled_error("cancelled");
  return answered / taken_s;
}

Status limit_to_http_rate(InferService& service, const CancelToken& cancel) {
  double planned = 0;
  for (const auto& m : service.models()) planned += service.planned_rate(m->name);
  if (planned <= kSurelyCarried_per_s) return {};
  HEDDLE_ASSIGN_OR_RETURN(const double carried, measured_http_rate(kMeasure_s, cancel));
  service.set_carried_rate(carried);
  return {};
}

}  // namespace heddle
