// An open-loop load generator: requests are sent when they are due, whatever became of those before them.
// Latencies count from the time at which a request was due. So a server that falls behind cannot slow its own test
// (coordinated omission).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/fleet/simulator.h"
#include "heddle/serve/http_message.h"
#include "heddle/serve/shape_buckets.h"
#include "heddle/serve/tls.h"

namespace heddle {

struct LoadTarget {
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string bearer_token;               // empty: none
  HttpHeaders headers;                    // further ones of each HTTP request
  std::shared_ptr<const TlsContext> tls;  // none: not encrypted
  bool grpc = false;                      // instead of HTTP
  std::string grpc_trusted;  // by gRPC with tls: the certificates that are trusted (PEM; empty: the system's)
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};
// One request to an HTTP server. Waits at most `seconds`. Errors: no server there, no answer in time.
Result<HttpAnswer> ask_http(const LoadTarget& target, const std::string& method, const std::string& path,
                            const std::string& body, double seconds);
// The same for JSON. Errors: also a status other than 200 (404 kNotFound, 409 kInfeasible, others
// kInvalidInput), with what the server says.
Result<Json> ask_json(const LoadTarget& target, const std::string& method, const std::string& path,
                      const std::string& body, double seconds);

// The inputs of a request.
struct LoadBody {
  // JSON members behind the id and the parameters, and the bytes behind the JSON.
  std::string inputs_json, tensors;
  std::string grpc_message;  // by gRPC: the request without its id and parameters, serialized
};

// What is asked for, as the server describes it.
struct ModelUnderLoad {
  std::string name;
  double slo_us = 0;
  double planned_rate_per_s = 0;  // that the server's plan sustains
  bool keeps_state = false;       // its requests belong to sessions
  std::vector<LoadBody> bodies;   // at least one
  std::vector<uint32_t> turns;  // request number i is of bodies[turns[i % turns.size()]]; empty: of the first

  size_t body_index(size_t i) const { return turns.empty() ? 0 : turns[i % turns.size()]; }
  const LoadBody& body(size_t i) const { return bodies[body_index(i)]; }
};

struct LoadContent {
  size_t payload_bytes = 0;  // of inputs of any size
  std::vector<ShapeCount>
      shapes;  // of requests, of which each has one at random, by its count; empty: open dimensions are 1
  uint64_t seed = 1;
};
// The models that the server offers, with one row of random values for each input. Errors: no server there, one
// that speaks something else, a model that is not there or does not have inputs of these shapes. `only` empty:
// all.
Result<std::vector<ModelUnderLoad>> load_models(const LoadTarget& target, std::span<const std::string> only,
                                                const LoadContent& content);

struct LoadOptions {
  // Requests under way at once; with as many a further one waits, on its clock. By HTTP each has a
  // connection, opened as it is needed; by gRPC they share up to 8.
  size_t max_connections = 256;
  double timeout_s = 30;  // from when a request is due until it counts as lost
  // Of a model with state: so many at once, which requests take in turn, and the requests of each. A request that is
  // due before the one before it in its session is answered waits, on its clock.
  size_t sessions = 64, session_requests = 20;
  // HTTP: a request whose connection breaks, that is answered by 503 or not for twice its SLO is sent again after
  // 50 ms, to the next of the target and these, until the timeout. Then it counts as lost, with the last reason.
  std::vector<LoadTarget> standbys;
  CancelToken cancel;  // sends nothing more, waits 2 s at most for what is under way
  ProgressSink* progress = nullptr;
};

struct LoadResult {
  // As the simulator counts: in time, late, dropped (status 504), failed (all else). Queueing and batch sizes
  // are the server's words; without classes.
  SimulationResult counted;
  // Of all answers, by HTTP's numbers also where gRPC's words came; 0: the connection broke, or no answer
  // came in time.
  std::map<int, uint64_t> statuses;
  std::map<std::string, uint64_t> errors;  // messages of failed requests, the first few kinds
  uint64_t mismatched = 0;     // answers that carry another request's id, or are malformed: these fail, too
  DurationHistogram lateness;  // from due to sent
  uint64_t connections = 0;
  uint64_t resent = 0;    // requests, each as often as it was sent again
  uint64_t sessions = 0;  // begun, of models with state
  double seconds = 0;     // from the first request due to the last answer
  // When the load was cancelled. Requests that were due and not sent by then failed, later ones do not count.
  std::optional<double> stopped_s;
};

// Sends `arrivals` (sorted, by index into `models`). Every arrival has exactly one outcome. Errors: arrivals
// that are not sorted or name no model, standbys for a model with state, no connection at all, a cancellation before
// the first is due.
Result<LoadResult> run_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                            std::span<const Arrival> arrivals, const LoadOptions& options);

// A table of the models, then what was offered in `offered_s`, or until the stop, and what went wrong.
std::string load_text(const LoadResult& result, double offered_s);
struct LoadPage {
  std::string traffic;           // in words
  double load_factor = 1;        // of the planned rates
  double wanted_attainment = 0;  // 0: the usual one
};
// A page with the load over time (fleet_simulation_html()).
std::string load_page(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                      const LoadResult& result, const LoadPage& about);
// statuses, errors, mismatched, lateness and what simulation_json() gives.
Json to_json(const LoadResult& result);

}  // namespace heddle
