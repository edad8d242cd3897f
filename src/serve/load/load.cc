#include "heddle/serve/load.h"

#include "heddle/base/json.h"
#include "heddle/report/fleet_view.h"
#include "load_run.h"

namespace heddle {

Result<LoadResult> run_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                            std::span<const Arrival> arrivals, const LoadOptions& options) {
  if (!(options.timeout_s > 0) || options.max_connections == 0)
    return Error(Code::kInvalidInput, "a load needs a timeout above 0 and at least one connection");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].model >= models.size() || arrivals[i].at < 0 ||
        (i > 0 && arrivals[i].at < arrivals[i - 1].at))
      return Error(Code::kInvalidInput, "arrival " + std::to_string(i) +
                                            ": its model does not exist, or the arrivals are not sorted");
  const auto load = (target.grpc ? grpc_load : http_load)(target, models, arrivals, options);
  return load->run();
}

Json to_json(const LoadResult& r) {
  Json out = simulation_json(r.counted);
  for (const auto& [status, count] : r.statuses) out["statuses"][std::to_string(status)] = count;
  out["errors"] = Json::object();
  for (const auto& [message, count] : r.errors) out["errors"][message] = count;
  out["mismatched"] = r.mismatched;
  out["connections"] = r.connections;
  out["seconds"] = r.seconds;
  out["lateness_p99_us"] = us_from_ns(r.lateness.percentile(.99));
  out["lateness_max_us"] = us_from_ns(r.lateness.max());
  return out;
}

}  // namespace heddle
