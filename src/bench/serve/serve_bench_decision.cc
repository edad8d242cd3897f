// How long a server's decisions take while it serves: a fleet of timed devices under an open-loop load.

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/load.h"
#include "heddle/serve/rest_api.h"
#include "serve_bench.h"

namespace heddle::bench {
namespace {

constexpr double kLoadFactor = .5;

// A hundred devices of two classes, as many as PPipe's clusters have. The slow class is worse at late blocks,
// so that plans have pipelines of two partitions.
Fleet hundred_devices() {
  Fleet fleet;
  fleet.name = "a hundred timed devices";
  fleet.max_partitions = 2;
  fleet.classes = {{.name = "fast", .count = 25, .share_levels = 2, .nic_bytes_per_s = 750e6},
                   {.name = "slow", .count = 75, .share_levels = 1, .nic_bytes_per_s = 750e6}};
  constexpr int kBlocks = 5;
  for (int m = 0; m < 3; ++m) {
    FleetModel model;
    model.name = "model-" + std::to_string(m);
    model.blocks = kBlocks;
    model.slo_us = 90e3 + 20e3 * m;
    model.margin_us = 20e3;
    model.cut_bytes.assign(kBlocks + 1, 200e3);
    model.latency_us.resize(2);
    for (const int share : {1, 2}) {
      auto& fast = model.latency_us[0].emplace_back();
      auto& blocks = fast.emplace_back();
      for (int b = 0; b < kBlocks; ++b) blocks.push_back((share == 1 ? 4e3 : 6e3) + 500. * m);
    }
    auto& blocks = model.latency_us[1].emplace_back().emplace_back();
    for (int b = 0; b < kBlocks; ++b) blocks.push_back(5e3 + 4e3 * b + 500. * m);
    fleet.models.push_back(std::move(model));
  }
  return fleet;
}

}  // namespace

Result<DecisionTimes> bench_decisions(SchedulerKind scheduler, double seconds, uint64_t seed,
                                      const std::function<bool()>& stop) {
  const Fleet fleet = hundred_devices();
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto", {}));
  HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
  auto next = std::make_unique<Generation>();
  std::vector<double> rates;
  for (const auto& m : deployment.models) {
    next->models.push_back(timed_model(m.name, us_from_ns(m.slo_ns), false));
    rates.push_back(kLoadFactor * m.rate_per_s);
  }
  LivePlaneOptions options;
  options.scheduler = scheduler;
  options.watch_decisions = true;
  std::vector<std::shared_ptr<DeviceRunner>> timed(deployment.devices.size());
  HEDDLE_ASSIGN_OR_RETURN(next->plane, LivePlane::create(std::move(deployment), options, std::move(timed)));
  LivePlane& plane = *next->plane;
  InferService service;
  service.serve(std::move(next));
  HEDDLE_ASSIGN_OR_RETURN(const auto http, start_rest(service));
  LoadTarget target;
  target.port = http->port();
  HEDDLE_ASSIGN_OR_RETURN(const auto models,
                          load_models(target, {}, {.payload_bytes = 0, .shapes = {}, .seed = seed}));
  HEDDLE_ASSIGN_OR_RETURN(auto arrivals, make_arrivals({}, rates, seconds, seed));
  // In slices, so that it can be stopped.
  DecisionTimes out;
  const TimeNs slice = kNsPerSecond / 2;
  for (size_t at = 0; at < arrivals.size() && !stop();) {
    std::vector<Arrival> some;
    const TimeNs begin = arrivals[at].at;
    for (; at < arrivals.size() && arrivals[at].at < begin + slice; ++at)
      some.push_back({arrivals[at].at - begin, arrivals[at].model});
    HEDDLE_ASSIGN_OR_RETURN(const auto run, run_load(target, models, some, {}));
    if (run.counted.total.failed > 0)
      return internal_error(std::to_string(run.counted.total.failed) +
                            " requests to the timed devices failed");
  }
  const auto counters = plane.counters();
  out.median = us_from_ns(counters.decision.percentile(.5));
  out.p99 = us_from_ns(counters.decision.percentile(.99));
  out.p99_lock = us_from_ns(counters.lock_wait.percentile(.99));
  http->stop(1);
  service.stop(1);
  return out;
}

}  // namespace heddle::bench
