#include "trace_flags.h"

namespace heddle::cli {

void TraceFlags::declare(Command& command) {
  command.option("--otlp", otlp,
                 "send OpenTelemetry traces to this collector by OTLP over HTTP, http://HOST:4318 (default: "
                 "OTEL_EXPORTER_OTLP_ENDPOINT; without either nothing is traced)");
  command.option("--otlp-sample", sample,
                 "share of the requests that are traced if their client does not say so (default 1)", 0, 1);
}

Result<std::unique_ptr<Tracer>> TraceFlags::open() const {
  HEDDLE_ASSIGN_OR_RETURN(auto options, tracer_settings(otlp, "--otlp"));
  if (!options && sample >= 0)
    return invalid_input("--otlp-sample needs --otlp, the collector of the traces");
  if (!options) return std::unique_ptr<Tracer>();
  if (sample >= 0) options->sample = sample;
  return Tracer::create(*options);
}

}  // namespace heddle::cli
