// Traced requests as a body of OTLP over HTTP in its JSON encoding (opentelemetry-proto, trace/v1).
#pragma once

#include <span>
#include <string>

#include "heddle/base/random.h"
#include "heddle/serve/tracer.h"

namespace heddle {

// The resource that all spans are of, as a JSON object. `instance`: unique among the processes of the service.
std::string otlp_resource(const std::string& service, const std::string& instance);

// The spans of each request: the request itself, then the time in the queue, each run of a partition and each way over
// a link. Rows that went together are one span. `ids` makes the spans' ids.
std::string otlp_body(const std::string& resource, std::span<const RequestTrace::Record> requests,
                      Random& ids);

}  // namespace heddle
