#include "otlp_json.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/base/version.h"

namespace heddle {
namespace {

// Numbers of the protocol: Span.SpanKind and Status.StatusCode.
constexpr int kInternalSpan = 1, kServerSpan = 2, kErrorStatus = 2;

// Writes JSON as text: documents of the JSON library would cost the exporting thread several times as much.
class SpanWriter {
 public:
  SpanWriter(std::string& out, const RequestTrace::Record& of, Random& ids) : out_(out), of_(of), ids_(ids) {}

  // Begins a span of the request's trace; attributes and end() follow. `own` 0: a new id.
  void begin(std::string_view name, int kind, uint64_t own, uint64_t parent, TimeNs from, TimeNs to) {
    while (own == 0) own = ids_.next();
    out_ += out_.ends_with('}') ? ",{" : "{";
    out_ += R"("traceId":")" + hex_text(of_.context.trace_high) + hex_text(of_.context.trace_low) +
            R"(","spanId":")" + hex_text(own) + '"';
    if (parent != 0) out_ += R"(,"parentSpanId":")" + hex_text(parent) + '"';
    if (!of_.state.empty()) out_ += R"(,"traceState":)" + json_text(of_.state);
    out_ += R"(,"name":)" + json_text(std::string(name)) + R"(,"kind":)" + std::to_string(kind) +
            R"(,"startTimeUnixNano":")" + unix_time(from) + R"(","endTimeUnixNano":")" +
            unix_time(std::max(from, to)) + R"(","attributes":[)";
  }
  void text(const char* name, const std::string& value) {
    if (!value.empty()) attribute(name, "stringValue", json_text(value));
  }
  void number(const char* name, uint64_t value) {
    attribute(name, "intValue", '"' + std::to_string(value) + '"');
  }
  void real(const char* name, double value) { attribute(name, "doubleValue", json_text(value)); }
  // `error` empty: none.
  void end(const std::string& error) {
    out_ += ']';
    if (!error.empty())
      out_ +=
          R"(,"status":{"code":)" + std::to_string(kErrorStatus) + R"(,"message":)" + json_text(error) + '}';
    out_ += '}';
  }

 private:
  std::string unix_time(TimeNs at) const { return std::to_string(of_.began_wall_ns + (at - of_.began)); }
  void attribute(const char* name, const char* type, const std::string& value) {
    out_ += (out_.ends_with('}') ? R"(,{"key":")" : R"({"key":")") + std::string(name) + R"(","value":{")" +
            type + R"(":)" + value + "}}";
  }

  std::string& out_;
  const RequestTrace::Record& of_;
  Random& ids_;
};

const char* worst_outcome(const RequestTrace::Record& request) {
  Outcome worst = Outcome::kOpen;
  for (const auto& row : request.rows) worst = std::max(worst, row.outcome);
  return worst == Outcome::kOpen ? "" : outcome_name(worst);
}

void write_request(SpanWriter& to, const RequestTrace::Record& request) {
  to.begin(request.model.empty() ? "infer" : "infer " + request.model, kServerSpan, request.span,
           request.context.span, request.began, request.ended);
  to.text("network.protocol.name", request.protocol);
  to.text("heddle.model", request.model);
  to.text("heddle.model_version", request.version);
  to.text("heddle.request_id", request.id);
  to.text("heddle.outcome", worst_outcome(request));
  if (!request.rows.empty()) {
    to.number("heddle.rows", request.rows.size());
    to.number("heddle.batch", request.batch);
    to.real("heddle.slo_us", request.slo_us);
  }
  to.end(request.error);
}

void write_queues(SpanWriter& to, const RequestTrace::Record& request) {
  std::map<std::pair<TimeNs, TimeNs>, size_t> queues;  // from, to: rows
  for (const auto& row : request.rows) ++queues[{row.arrived, row.begun > 0 ? row.begun : row.finished}];
  for (const auto& [time, rows] : queues) {
    to.begin("queue", kInternalSpan, 0, request.span, time.first, time.second);
    to.number("heddle.rows", rows);
    to.end("");
  }
}

void write_steps(SpanWriter& to, const RequestTrace::Record& request) {
  struct Together {
    const PlaneStep* step = nullptr;
    size_t rows = 0;
  };
  std::map<std::pair<TimeNs, uint64_t>, Together> steps;  // by begin and work
  for (const auto& row : request.rows)
    for (const auto& step : row.steps) {
      auto& together = steps[{step.began, step.work}];
      together.step = &step;
      ++together.rows;
    }
  for (const auto& [key, together] : steps) {
    const PlaneStep& s = *together.step;
    to.begin(s.transfer ? "link" : "partition", kInternalSpan, 0, request.span, s.began, s.ended);
    to.number("heddle.pipeline", s.pipeline);
    to.number("heddle.partition", s.partition);
    to.text("heddle.device_class", s.device_class);
    to.number("heddle.device", s.device);
    if (s.transfer) to.number("heddle.source", s.source);
    to.text("heddle.worker", s.worker);
    to.text("heddle.source_worker", s.source_worker);
    to.number("heddle.batch", s.batch);
    to.number("heddle.rows", together.rows);
    to.real("heddle.planned_us", us_from_ns(s.planned_ns));
    if (!s.transfer && !s.lost) to.real("heddle.measured_us", us_from_ns(s.measured_ns));
    to.end(s.lost ? "its device was lost, took too long or failed; the batch runs elsewhere if there is time"
                  : "");
  }
}

}  // namespace

std::string otlp_resource(const std::string& service, const std::string& instance) {
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  Json attributes = Json::array();
  const auto add = [&attributes](const char* name, const std::string& value) {
    attributes.push_back({{"key", name}, {"value", {{"stringValue", value}}}});
  };
  add("service.name", service);
  add("service.version", kVersion);
  add("service.instance.id", instance);
  add("host.name", host);
  add("telemetry.sdk.name", "heddle");
  add("telemetry.sdk.language", "cpp");
  add("telemetry.sdk.version", kVersion);
  attributes.push_back({{"key", "process.pid"}, {"value", {{"intValue", std::to_string(::getpid())}}}});
  return json_text(Json{{"attributes", std::move(attributes)}});
}

std::string otlp_body(const std::string& resource, std::span<const RequestTrace::Record> requests,
                      Random& ids) {
  std::string out = R"({"resourceSpans":[{"resource":)" + resource +
                    R"(,"scopeSpans":[{"scope":{"name":"heddle","version":")" + kVersion + R"("},"spans":[)";
  for (const auto& request : requests) {
    SpanWriter to(out, request, ids);
    write_request(to, request);
    write_queues(to, request);
    write_steps(to, request);
  }
  return out + "]}]}]}";
}

}  // namespace heddle
