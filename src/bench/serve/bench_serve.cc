// The serve suite: what the server adds to a direct call, its rate beside a plain gRPC echo's in the same
// run, and its decisions under load.
#include "bench_files.h"
#include "serve_bench.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr double kServeSeconds = 5;
// Targets: us of added latency, share of the plain echo's rate, us of a decision (99 %).
constexpr double kMostInProcess_us = 100, kMostGrpc_us = 400, kLeastShare = .5, kMostDecision_us = 5;

void add_serve_rows(const std::string& instance, const ServeBench& b, bool trivial,
                    std::vector<BenchRow>& rows) {
  const auto add = [&](const std::string& metric, const char* unit, double value, const char* baseline,
                       double beside, std::optional<double> target) {
    auto row = bench_row("serve", instance, "serve", metric, unit, value);
    row.beside(baseline, beside);
    row.reference = target;
    if (target) row.reference_source = "target";
    rows.push_back(std::move(row));
  };
  const auto added = [&](const std::string& how, double us, std::optional<double> target) {
    add("latency added " + how, "us", us, "direct call", b.latency.direct, target);
  };
  added("in process", b.latency.in_process, kMostInProcess_us);
  added("by gRPC", b.latency.grpc, kMostGrpc_us);
  added("by HTTP", b.latency.http, std::nullopt);
  if (!trivial) return;  // the model's own time is what limits the rate
  added("by a plain gRPC echo", b.latency.grpc_echo, std::nullopt);
  const auto rate = [&](const std::string& how, double per_s, std::optional<double> target) {
    add("answers per second by " + how, "1/s", per_s, "plain gRPC echo", b.rate.grpc_echo, target);
  };
  rate("gRPC", b.rate.grpc, b.rate.grpc_echo * kLeastShare);
  rate("HTTP", b.rate.http, std::nullopt);
  add("answers per second by HTTP, each request traced", "1/s", b.rate.http_traced, "not traced", b.rate.http,
      std::nullopt);
  add("answers per second by HTTP, one in a hundred traced", "1/s", b.rate.http_sampled, "not traced",
      b.rate.http, std::nullopt);
}

// The decision by the clock has the target; what the machine took from it stands beside it.
Status add_decisions(SchedulerKind scheduler, double seconds, uint64_t seed,
                     const std::function<bool()>& stop, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto d, bench_decisions(scheduler, seconds, seed, stop));
  const auto add = [&](const std::string& what, double us) -> BenchRow& {
    rows.push_back(bench_row("serve", std::string("100 timed devices, ") + scheduler_name(scheduler), "serve",
                             what, "us", us));
    return rows.back();
  };
  add("decision, median", d.median);
  auto& p99 = add("decision, p99", d.p99);
  p99.against(kMostDecision_us, "target");
  add("wait for the plane's lock, p99", d.p99_lock);
  return {};
}

}  // namespace

Status bench_serve(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  const double seconds = options.time_limit_s > 0 ? options.time_limit_s : kServeSeconds;
  const auto stop = [&control] { return control.cancel.cancelled(); };
  const auto add_copies = [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const auto copy, bench_serving("", seconds, stop));
    add_serve_rows("copies 1024 bytes", copy, true, rows);
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, add_copies));
  for (const auto scheduler : {SchedulerKind::kReservation, SchedulerKind::kReactive})
    HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&] {
      return add_decisions(scheduler, seconds, static_cast<uint64_t>(options.seed), stop, rows);
    }));
  if (options.models.empty()) return {};
  return for_each_model(options, control, rows, [&](const BenchModel& model) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const auto measured, bench_serving(model.path, seconds, stop));
    add_serve_rows(model.name, measured, false, rows);
    return {};
  });
}

}  // namespace heddle::bench
