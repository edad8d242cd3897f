#include "heddle/serve/rest_api.h"

#include <algorithm>
#include <exception>
#include <new>

#include "dashboard.h"
#include "heddle/base/json.h"
#include "heddle/base/version.h"
#include "infer_json.h"
#include "plane/fault.h"

namespace heddle {
namespace {

HttpResponse error_response(const Error& error) {
  auto response = http_error(http_status(error.code()), error.to_string());
  if (response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Json tensor_json(const ServedModel& model, const TensorInfo& t) {
  Json shape = t.shown();
  if (model.batched) shape.insert(shape.begin(), -1);
  return {{"name", t.name}, {"datatype", protocol_name(t.dtype)}, {"shape", std::move(shape)}};
}

Json metadata_json(const ServedModel& model) {
  Json out = {
      {"name", model.name},         {"versions", {model.version}},
      {"platform", model.platform}, {"inputs", Json::array()},
      {"outputs", Json::array()},   {"parameters", {{"slo_us", model.slo_us}, {"max_rows", model.max_rows}}}};
  if (!model.precision.empty()) out["parameters"]["precision"] = model.precision;
  for (const auto& t : model.inputs)
    if (t.listed()) out["inputs"].push_back(tensor_json(model, t));
  for (const auto& t : model.outputs)
    if (t.listed()) out["outputs"].push_back(tensor_json(model, t));
  return out;
}

Json sequence_json(const ServedModel& model) {
  Json states = Json::array();
  for (const auto& t : model.state->tensors) {
    const auto& info = model.inputs[t.input];
    states.push_back({{"input_name", info.name},
                      {"output_name", model.outputs[t.output].name},
                      {"data_type", std::string("TYPE_") + protocol_name(info.dtype)},
                      {"dims", info.row}});
  }
  return {{"max_sequence_idle_microseconds", static_cast<int64_t>(us_from_ns(model.state->idle_ns))},
          {"state", std::move(states)}};
}

// Triton's model configuration, as far as its clients read it.
Json config_json(const ServedModel& model) {
  const auto tensor = [](const TensorInfo& t) {
    return Json{
        {"name", t.name}, {"data_type", std::string("TYPE_") + protocol_name(t.dtype)}, {"dims", t.shown()}};
  };
  Json out = {{"name", model.name},     {"platform", model.platform},
              {"backend", "heddle"},    {"max_batch_size", model.batched ? model.max_rows : 0},
              {"input", Json::array()}, {"output", Json::array()}};
  for (const auto& t : model.inputs)
    if (t.listed()) out["input"].push_back(tensor(t));
  for (const auto& t : model.outputs)
    if (t.listed()) out["output"].push_back(tensor(t));
  if (model.state) out["sequence_batching"] = sequence_json(model);
  if (!model.precision.empty()) out["parameters"]["precision"]["string_value"] = model.precision;
  return out;
}

Json part_json(const ModelStatisticsRecord::Part& part) { return {{"count", part.count}, {"ns", part.ns}}; }

Json statistics_json(const ServedModel& model, const ModelStatisticsRecord& s) {
  const Json none = {{"count", 0}, {"ns", 0}};
  Json batches = Json::array();
  uint64_t executions = 0;
  for (const auto& [size, part] : s.batches) {
    // Requests are counted here; `size` of their rows ran together.
    executions += part.count;
    batches.push_back({{"batch_size", size},
                       {"compute_input", none},
                       {"compute_infer", part_json(part)},
                       {"compute_output", none}});
  }
  return {{"name", model.name},
          {"version", model.version},
          {"last_inference", s.last_ms},
          {"inference_count", s.rows},
          {"execution_count", executions},
          {"inference_stats",
           {{"success", part_json(s.success)},
            {"fail", part_json(s.fail)},
            {"queue", part_json(s.queue)},
            {"compute_input", none},
            {"compute_infer", part_json(s.compute)},
            {"compute_output", none},
            {"cache_hit", none},
            {"cache_miss", none}}},
          {"batch_stats", std::move(batches)}};
}

Json server_json() {
  return {{"name", "heddle"},
          {"version", kVersion},
          {"extensions",
           {"binary_tensor_data", "statistics", "model_repository", "model_configuration", "schedule_policy",
            "sequence", "sequence(string_id)"}}};
}

std::shared_ptr<RequestTrace> traced(Tracer& tracer, const HttpHead& head) {
  // Of two parents none is right.
  const auto parents = std::ranges::count(head.headers, "traceparent", &HttpHeaders::value_type::first);
  const std::string *parent = head.header("traceparent"), *state = head.header("tracestate");
  return tracer.begin("http", parents == 1 ? *parent : "", state != nullptr ? *state : "");
}

// On a device's thread: nothing may escape.
HttpResponse encoded(const InferResponse& answer) {
  try {
    if (fault_at(FaultPoint::kAnswer)) throw std::bad_alloc();
    auto body = infer_response_body(answer);
    HttpResponse response;
    response.body = std::move(body.bytes);
    if (body.json_bytes) {
      response.content_type = "application/octet-stream";
      response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(*body.json_bytes));
    }
    return response;
  } catch (const std::exception& e) {
    return error_response(internal_error(e.what()));
  }
}

void infer(InferService& service, const HttpHead& head, const HttpBody& body, const HttpReply& reply,
           const std::string& model, const std::string& version) {
  const auto trace = service.tracer() != nullptr ? traced(*service.tracer(), head) : nullptr;
  std::optional<size_t> json_bytes;
  if (const auto* header = head.header("inference-header-content-length")) {
    json_bytes = parse_digits(*header);
    if (!json_bytes)
      return reply.send(http_error(400, "Inference-Header-Content-Length is no number of bytes"));
  }
  const std::shared_ptr<const void> owner = body.data;
  auto request = infer_request_from_body(body.text(), json_bytes, owner);
  if (!request.ok()) {
    service.count_unreadable(model);
    if (trace) trace->record.error = request.error().to_string();
    return reply.send(error_response(request.error()));
  }
  request->trace = trace;
  if (fault_at(FaultPoint::kParse)) return reply.send(error_response(fault_error()));
  request->model = model;
  request->version = version;
  service.infer(std::move(*request), [reply](Result<InferResponse> result) {
    if (!result.ok()) return reply.send(error_response(result.error()));
    reply.send(encoded(*result));
  });
}

HttpResponse empty_with(int status) { return {.status = status}; }

void answer_model(InferService& service, const HttpHead& head, const HttpBody& body, const HttpReply& reply,
                  std::vector<std::string> parts) {
  const std::string name = parts[2];
  parts.erase(parts.begin(), parts.begin() + 3);
  std::string version;
  if (parts.size() >= 2 && parts[0] == "versions") {
    version = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  const std::string action = parts.empty() ? "" : parts[0];
  if (parts.size() == 1 && action == "infer") {
    if (asked_by("POST", head, reply)) infer(service, head, body, reply, name, version);
    return;
  }
  const bool known = action.empty() || action == "ready" || action == "config" || action == "stats";
  if (parts.size() > 1 || !known)
    return reply.send(http_error(
        404, "a model has no '" + action.substr(0, 64) + "'; expected infer, ready, config or stats"));
  if (!asked_by("GET", head, reply)) return;
  const auto model = service.model(name, version);
  if (!model.ok()) return reply.send(error_response(model.error()));
  if (action == "ready") return reply.send(empty_with(service.ready() ? 200 : 503));
  if (action == "config") return reply.send(json_response(config_json(**model)));
  if (action == "stats")
    return reply.send(
        json_response({{"model_stats", Json::array({statistics_json(**model, service.statistics(name))})}}));
  reply.send(json_response(metadata_json(**model)));
}

void answer_repository(InferService& service, const HttpHead& head, const HttpReply& reply,
                       const std::vector<std::string>& parts) {
  const auto& repository = service.repository();
  if (parts.size() == 3 && parts[2] == "index") {
    if (!asked_by("POST", head, reply)) return;
    Json list = Json::array();
    for (const auto& e : service.index())
      list.push_back({{"name", e.name}, {"version", e.version}, {"state", e.state}, {"reason", e.reason}});
    return reply.send(json_response(list));
  }
  if (parts.size() == 5 && parts[2] == "models" && (parts[4] == "load" || parts[4] == "unload")) {
    if (!asked_by("POST", head, reply)) return;
    const auto& change = parts[4] == "load" ? repository.load : repository.unload;
    if (!change)
      return reply.send(http_error(501, "the models of a fleet are loaded and unloaded by its plan"));
    return change(parts[3], [reply](const Status& status) {
      reply.send(status.ok() ? json_response(Json::object()) : error_response(status.error()));
    });
  }
  reply.send(http_error(404, "expected v2/repository/index or v2/repository/models/NAME/load or unload"));
}

}  // namespace

bool is_open_path(std::string_view path) {
  return path == "/" || path == "/v2/health/live" || path == "/v2/health/ready";
}

void answer_rest(InferService& service, const HttpHead& head, const HttpBody& body, const HttpReply& reply) {
  const auto& parts = head.parts;
  if (parts.size() == 1 && parts[0] == "metrics") {
    if (!asked_by("GET", head, reply)) return;
    return reply.send(
        {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = service.metrics()});
  }
  if (parts.empty() && head.path == "/") {
    if (!asked_by("GET", head, reply)) return;
    constexpr const char* kPolicy =
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";
    return reply.send({.content_type = "text/html; charset=utf-8",
                       .headers = {{"Content-Security-Policy", kPolicy}},
                       .body = std::string(dashboard_page())});
  }
  if (parts.empty() || parts[0] != "v2")
    return reply.send(http_error(404, "there is no " + head.path.substr(0, 256) +
                                          "; the protocol's paths begin with /v2, see also /metrics"));
  if (parts.size() == 1) {
    if (asked_by("GET", head, reply)) reply.send(json_response(server_json()));
    return;
  }
  if (parts[1] == "health" && parts.size() == 3 && (parts[2] == "live" || parts[2] == "ready")) {
    if (asked_by("GET", head, reply))
      reply.send(empty_with((parts[2] == "live" ? service.live() : service.ready()) ? 200 : 503));
    return;
  }
  if (parts[1] == "status" && parts.size() == 2) {
    if (asked_by("GET", head, reply)) reply.send(json_response(service.status()));
    return;
  }
  if (parts[1] == "repository") return answer_repository(service, head, reply, parts);
  if (parts[1] == "models" && parts.size() == 3 && parts[2] == "stats") {
    if (!asked_by("GET", head, reply)) return;
    Json list = Json::array();
    for (const auto& m : service.models()) list.push_back(statistics_json(*m, service.statistics(m->name)));
    return reply.send(json_response({{"model_stats", std::move(list)}}));
  }
  if (parts[1] == "models" && parts.size() >= 3) return answer_model(service, head, body, reply, parts);
  reply.send(http_error(404, "there is no " + head.path.substr(0, 256) +
                                 "; expected v2, v2/health, v2/models, v2/repository or v2/status"));
}

Result<std::unique_ptr<HttpServer>> start_rest(InferService& service) {
  return HttpServer::start({},
                           [&service](const HttpHead& head, const HttpBody& body, const HttpReply& reply) {
                             answer_rest(service, head, body, reply);
                           });
}

}  // namespace heddle
