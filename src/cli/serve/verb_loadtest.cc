// heddle loadtest: open-loop requests to a server, and the outcome of each.
#include <algorithm>
#include <cmath>
#include <optional>

#include "data_plane_flags.h"
#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/serve/load.h"
#include "heddle/serve/server_target.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct LoadFlags {
  std::string url, models, trace, shapes, payload = "0", timeout = "30s", token_file, ca_file, html;
  TrafficFlags traffic;
  double rate = 0, load_factor = 0, duration_s = 10, attainment = 0;
  std::vector<std::string> standbys;
  int64_t seed = 1, connections = 256;
  std::optional<int64_t> sessions, session_requests;
};

Result<std::vector<Arrival>> arrivals_of(const LoadFlags& o, const std::vector<ModelUnderLoad>& models) {
  if (!o.trace.empty()) {
    if (o.rate > 0) return invalid_input("--trace has its own rate; scale it by --load-factor, not --rate");
    std::vector<std::string> names;
    for (const auto& m : models) names.push_back(m.name);
    HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(o.trace));
    auto recorded = arrivals_from_csv(text, names);
    if (!recorded.ok()) return std::move(recorded).error().with_context(o.trace);
    if (o.load_factor > 0) scale_arrivals(*recorded, o.load_factor);
    return recorded;
  }
  if ((o.rate > 0) == (o.load_factor > 0))
    return invalid_input(
        "load needs one of --rate, --load-factor (of what the server's plan sustains) "
        "and --trace");
  HEDDLE_ASSIGN_OR_RETURN(const auto traffic, o.traffic.traffic(false));
  double planned = 0;
  for (const auto& m : models) planned += m.planned_rate_per_s;
  std::vector<double> rates;
  for (const auto& m : models) {
    // A total is split as the plan is, evenly where there is none.
    const double share =
        planned > 0 ? m.planned_rate_per_s / planned : 1.0 / static_cast<double>(models.size());
    rates.push_back(o.rate > 0 ? o.rate * share : o.load_factor * m.planned_rate_per_s);
  }
  return make_arrivals(traffic, rates, o.duration_s, static_cast<uint64_t>(o.seed));
}

Status set_sessions(const LoadFlags& o, const std::vector<ModelUnderLoad>& models, LoadOptions& options) {
  const char* const given = first_given(
      {{"--sessions", o.sessions.has_value()}, {"--session-requests", o.session_requests.has_value()}});
  if (given != nullptr && std::ranges::none_of(models, &ModelUnderLoad::keeps_state))
    return invalid_input(std::string(given) +
                         " is for models that keep state between requests; none of these does");
  if (o.sessions) options.sessions = static_cast<size_t>(*o.sessions);
  if (o.session_requests) options.session_requests = static_cast<size_t>(*o.session_requests);
  return {};
}

std::string traffic_text(const LoadFlags& o) {
  if (!o.trace.empty()) return "trace " + o.trace;
  return (o.traffic.kind.empty() ? "poisson" : o.traffic.kind) + " traffic, seed " + std::to_string(o.seed);
}

Result<int> run_load_verb(const LoadFlags& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_output(o.html));
  HEDDLE_ASSIGN_OR_RETURN(const auto target, server_target(o.url, o.token_file, o.ca_file, true));
  const auto payload = parse_bytes(o.payload);
  if (!payload || *payload < 0 || *payload > (int64_t{1} << 28))
    return flag_error("--payload", o.payload, "a size up to 256MiB");
  const auto timeout = parse_time_us(o.timeout);
  if (!timeout || !(*timeout > 0) || *timeout > 3.6e9)
    return flag_error("--timeout", o.timeout, "a time such as 30s");
  LoadContent content;
  content.payload_bytes = static_cast<size_t>(*payload);
  content.seed = static_cast<uint64_t>(o.seed);
  if (!o.shapes.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(content.shapes, read_shape_trace(o.shapes));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto models, load_models(target, split_list(o.models), content));
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, arrivals_of(o, models));
  if (arrivals.empty()) {
    double planned = 0;
    for (const auto& m : models) planned += m.planned_rate_per_s;
    return invalid_input(
        "no request is due: give a longer --duration or a higher rate (the server's plan has " +
        format_requests(planned) + " for these models)");
  }
  LoadOptions options;
  for (const std::string& url : o.standbys) {
    HEDDLE_ASSIGN_OR_RETURN(options.standbys.emplace_back(), server_target(url, o.token_file, o.ca_file));
  }
  HEDDLE_RETURN_IF_ERROR(set_sessions(o, models, options));
  options.max_connections = static_cast<size_t>(o.connections);
  options.timeout_s = *timeout * 1e-6;
  options.cancel = invocation.cancel;
  options.progress = invocation.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto result, run_load(target, models, arrivals, options));
  if (invocation.json) {
    show_json(invocation, to_json(result));
  } else {
    print("{}", load_text(result, !o.trace.empty() ? std::max(seconds_from_ns(result.counted.horizon), 1e-3)
                                                   : o.duration_s));
  }
  // Last: where it cannot be written, the figures are shown all the same.
  if (!o.html.empty()) {
    const LoadPage about = {.traffic = traffic_text(o),
                            .load_factor = o.load_factor > 0 ? o.load_factor : 1,
                            .wanted_attainment = o.attainment};
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.html, load_page(target, models, result, about)));
  }
  return result.counted.total.attainment() < o.attainment ? kExitNo : kExitDone;
}

}  // namespace

RunFn setup_loadtest(Command& command) {
  auto o = std::make_shared<LoadFlags>();
  command.positional("URL", o->url,
                     "the server, http://HOST:PORT or grpc://HOST:PORT (encrypted: https, grpcs)");
  command.option("--models", o->models, "only these models (comma-separated; default: all that are loaded)");
  command.rate("--rate", o->rate, "requests of all models, split as in the server's plan", 0, 1e7);
  command.option("--load-factor", o->load_factor,
                 "requests per second as a multiple of what the server's plan sustains", 0, 1000);
  command.seconds("--duration", o->duration_s, "time of arrivals (default 10s)", .01, 1e6);
  o->traffic.declare(command, "poisson (default), bursty or diurnal");
  command.option("--trace", o->trace, "recorded arrivals, a CSV with the header time_us or time_us,model");
  command.option(
      "--shapes", o->shapes,
      "file with the shapes of a request a line: requests get them at random (docs/varying-shapes.md)");
  command.option("--payload", o->payload,
                 "bytes of inputs that have no fixed size (emulated devices; default 0)");
  command.option("--connections", o->connections,
                 "most requests in flight (default 256); each has its own connection by HTTP, and they "
                 "share 8 by gRPC",
                 1, 100000);
  command.option("--sessions", o->sessions,
                 "models with state: sessions at once of each, which requests take in turn (default 64)", 1,
                 1'000'000);
  command.option("--session-requests", o->session_requests,
                 "models with state: requests of a session, one after the other (default 20)", 1,
                 1'000'000'000);
  command.option("--timeout", o->timeout,
                 "time after a request's due time at which it counts as lost (default 30s)");
  command.list("--standby", o->standbys,
               "http: send requests again, to this server, when the other one does not answer (repeatable)");
  command.option("--token-file", o->token_file, "the server's bearer token");
  command.option("--ca", o->ca_file,
                 "https and grpcs: the certificates that are trusted (PEM; default: the system's)");
  command.option("--seed", o->seed, "random seed of arrivals and inputs (default 1)", 0, INT64_MAX);
  command.option("--attainment", o->attainment, "exit with status 1 if a smaller share is in time", 0, 1);
  command.option("--html", o->html, "write a page with the load over time");
  return [o](const Invocation& invocation) { return run_load_verb(*o, invocation); };
}

}  // namespace heddle::cli
