// The flags of `heddle serve` for traces, and the variables of OpenTelemetry that stand for them.
#pragma once

#include <memory>
#include <string>

#include "heddle/command/command.h"
#include "heddle/serve/tracer.h"

namespace heddle::cli {

struct TraceFlags {
  std::string otlp;
  double sample = -1;  // below 0: not given

  void declare(Command& command);
  // Null: neither the flag nor OTEL_EXPORTER_OTLP_ENDPOINT names a collector. Errors: a malformed address or variable.
  Result<std::unique_ptr<Tracer>> open() const;
};

}  // namespace heddle::cli
