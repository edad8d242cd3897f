// Measures how many requests HTTP carries on this machine, however fast the devices are.
#pragma once

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/serve/infer_service.h"

namespace heddle {

// Requests of 1 kB per second, with the client on this machine, too, and devices that take no time. Takes about
// `seconds`.
Result<double> measured_http_rate(double seconds, const CancelToken& cancel);

// If the plan's devices serve more than HTTP surely carries, measures that and sets it as the service's limit.
Status limit_to_http_rate(InferService& service, const CancelToken& cancel);

}  // namespace heddle
