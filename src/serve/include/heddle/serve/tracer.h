// OpenTelemetry traces of requests, sent to a collector by OTLP over HTTP (JSON). A request that is traced carries a
// RequestTrace; when that ends, the request's spans are formed and sent by a thread of the tracer. If that falls
// behind, whole traces are dropped and counted; no request waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/serve/live_plane.h"
#include "heddle/serve/load.h"
#include "heddle/serve/trace_context.h"

namespace heddle {

struct TracerOptions {
  LoadTarget collector;             // its headers are sent with each export
  std::string path = "/v1/traces";  // of the collector
  std::string service = "heddle";   // service.name
  double sample = 1;          // share of the traces that begin here; a caller's decision holds for its own
  size_t max_waiting = 4096;  // requests that are not sent yet: more are dropped
  size_t most_at_once = 64;   // requests in one export
  double interval_s = 1;      // between exports of fewer
  double timeout_s = 3;       // of one export
  double retry_s = .5;        // before the first of three further attempts, each after twice the time
};

// For the collector at this address, "http://HOST:4318", or the one that OpenTelemetry's variables name, with what they
// say beside; nullopt: neither names one. Errors, with `origin` of the address before them: a malformed address or
// variable.
Result<std::optional<TracerOptions>> tracer_settings(const std::string& collector, const char* origin);

struct TracerCounters {
  uint64_t exported = 0, dropped = 0, failed = 0;  // requests: sent; too many waited; refused or not answered
};

// One row of a traced request.
struct TracedRow {
  TimeNs arrived = 0, begun = 0, finished = 0;  // begun 0: never
  Outcome outcome = Outcome::kOpen;
  PlaneSteps steps;
};

// What is known of a traced request. Filled by whoever has the request; its end is the end of the request.
class RequestTrace {
 public:
  struct Record {
    TraceContext context;
    std::string state;          // the caller's tracestate
    uint64_t span = 0;          // of the request itself
    int64_t began_wall_ns = 0;  // since 1970
    TimeNs began = 0, ended = 0;
    std::string protocol;                   // "http", "grpc"
    std::string model, version, id, error;  // error empty: it was answered
    double slo_us = 0;
    uint32_t batch = 0;
    std::vector<TracedRow> rows;
  };
  class Sink;

  RequestTrace(std::shared_ptr<Sink> sink, Record begun) : record(std::move(begun)), sink_(std::move(sink)) {}
  ~RequestTrace();
  RequestTrace(const RequestTrace&) = delete;
  RequestTrace& operator=(const RequestTrace&) = delete;

  Record record;

 private:
  const std::shared_ptr<Sink> sink_;
};

class Tracer {
 public:
  // Errors: options out of range. That no collector answers is none: it is logged and counted.
  static Result<std::unique_ptr<Tracer>> create(const TracerOptions& options);
  virtual ~Tracer() = default;  // sends what waits, for at most timeout_s; later traces are dropped

  // Of a request that arrives now. `traceparent`, `tracestate`: the caller's, empty: none. Null: it is not traced.
  // Thread-safe.
  virtual std::shared_ptr<RequestTrace> begin(const char* protocol, std::string_view traceparent,
                                              std::string_view tracestate) = 0;
  virtual TracerCounters counters() const = 0;
};

}  // namespace heddle
