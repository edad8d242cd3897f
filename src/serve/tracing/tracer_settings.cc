#include <algorithm>
#include <cstdlib>

#include "heddle/base/spelling.h"
#include "heddle/serve/http_message.h"
#include "heddle/serve/server_target.h"
#include "heddle/serve/tracer.h"

namespace heddle {
namespace {

constexpr const char* kEndpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr const char* kHeadersVariable = "OTEL_EXPORTER_OTLP_HEADERS";

// An empty variable is as good as none.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "http://HOST[:PORT][/PATH]": the collector, and the path of its traces.
Status read_endpoint(const std::string& url, TracerOptions& options) {
  const bool tls = url.starts_with("https://");
  if (!tls && !url.starts_with("http://"))
    return invalid_input(url + ": expected a collector's address such as http://HOST:4318");
  const auto host = url.find("://") + 3;
  const auto path = std::min(url.find('/', host), url.size());
  std::string server = url.substr(0, path);
  const auto colon = server.rfind(':'), bracket = server.rfind(']');  // an IPv6 address has colons of its own
  if (colon < host || (bracket != std::string::npos && colon < bracket)) server += tls ? ":443" : ":80";
  HEDDLE_ASSIGN_OR_RETURN(options.collector, server_target(server, "", ""));
  std::string base = url.substr(path);
  while (base.ends_with('/')) base.pop_back();
  options.path = base + "/v1/traces";
  if (std::ranges::any_of(options.path, [](char c) { return c <= ' ' || c > '~'; }))
    return invalid_input(url + ": expected a collector's address without blanks");
  return {};
}

// "key1=value1,key2=value2", the values with %XX for other characters.
Status read_headers(const std::string& text, HttpHeaders& headers) {
  for (const auto& part : split_list(text)) {
    const auto eq = part.find('=');
    std::string name = eq == std::string::npos ? "" : part.substr(0, eq), value;
    for (size_t at = eq + 1; eq != std::string::npos && at < part.size(); ++at) {
      const auto decoded = percent_code(part, at);
      value += decoded.value_or(part[at]);
      at += decoded ? 2 : 0;
    }
    while (name.starts_with(' ')) name.erase(0, 1);
    const bool plain = std::ranges::all_of(name + value, [](char c) { return c >= ' ' && c <= '~'; });
    if (name.empty() || !plain || name.find_first_of(" :") != std::string::npos)
      return invalid_input(std::string(kHeadersVariable) + ": expected NAME=VALUE,NAME=VALUE");
    headers.emplace_back(name, value);
  }
  return {};
}

}  // namespace

Result<std::optional<TracerOptions>> tracer_settings(const std::string& collector, const char* origin) {
  const auto url = collector.empty() ? variable(kEndpointVariable) : collector;
  if (url.empty()) return std::optional<TracerOptions>();
  if (collector.empty() && variable("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc")
    return invalid_input("OTEL_EXPORTER_OTLP_PROTOCOL=grpc: traces are sent by HTTP; give " +
                         std::string(origin) + " the collector's HTTP address, often port 4318");
  TracerOptions options;
  if (auto status = read_endpoint(url, options); !status.ok())
    return std::move(status).error().with_context(collector.empty() ? kEndpointVariable : origin);
  options.collector.headers = {{"Content-Type", "application/json"}};
  HEDDLE_RETURN_IF_ERROR(read_headers(variable(kHeadersVariable), options.collector.headers));
  if (const auto service = variable("OTEL_SERVICE_NAME"); !service.empty()) options.service = service;
  return std::optional(std::move(options));
}

}  // namespace heddle
