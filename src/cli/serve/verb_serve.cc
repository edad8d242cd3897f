// heddle serve: models on this machine's core sets, a plan of one model, or a fleet's plan on devices that
// are here or timed, as a service.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <optional>
#include <thread>

#include "data_plane_flags.h"
#include "fleet_serve_flags.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/base/stopwatch.h"
#include "heddle/base/units.h"
#include "heddle/command/rank_verb.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/followed_files.h"
#include "heddle/serve/grpc_server.h"
#include "heddle/serve/http_rate.h"
#include "heddle/serve/local_server.h"
#include "heddle/serve/machine_fleet.h"
#include "heddle/serve/opened_plan.h"
#include "heddle/serve/rest_api.h"
#include "heddle/serve/status_tables.h"
#include "heddle/serve/worker_security.h"
#include "heddle/session/rank_plan.h"
#include "log_flags.h"
#include "model/model_flags.h"
#include "session_flags.h"
#include "standby_flags.h"
#include "trace_flags.h"
#include "varying_flags.h"
#include "verbs.h"
#include "what_is_served.h"

namespace heddle::cli {
namespace {

struct ServeFlags {
  std::vector<std::string> what, shapes, values;
  VaryingFlags varying;
  SessionFlags sessions;
  std::string host = "127.0.0.1", slo, devices, plan_for, scheduler, plan, guard, token_file;
  std::string precision, budget;
  CalibrationFlags calibration;
  std::string tls_cert, tls_key, rank_devices;
  std::vector<std::string> host_names;
  std::string max_body = "64MiB", max_memory = "1GiB";
  int64_t port = 8000, grpc_port = 8001, max_connections = 1024;
  std::optional<int64_t> max_batch, in_flight;
  double max_rate = 0, drain_s = 10, clock = 1;
  ServeWorkerFlags workers;
  ServeDriftFlags drift;
  bool adapt = false;
  StandbyFlags standby;
  TraceFlags traces;
  LogFlags log;
};

// Threads wake up late, so that what is planned to end at its deadline ends behind it.
constexpr double kMostGuard_us = 2000, kGuardShare = .05;
constexpr int64_t kMostInFlight = 1024;

Result<HttpServerOptions> http_options(const ServeFlags& o) {
  HttpServerOptions http;
  http.host = o.host;
  http.port = static_cast<int>(o.port);
  http.max_connections = static_cast<size_t>(o.max_connections);
  if (o.max_rate > 0) http.rate = std::make_shared<RateLimit>(o.max_rate);
  http.is_open = is_open_path;
  http.host_names = o.host_names;
  const auto body = parse_bytes(o.max_body), memory = parse_bytes(o.max_memory);
  if (!body || *body < 1) return flag_error("--max-body", o.max_body, "a size such as 64MiB");
  if (!memory || *memory < *body)
    return flag_error("--max-memory", o.max_memory, "a size such as 1GiB, not below --max-body");
  http.max_body_bytes = static_cast<size_t>(*body);
  http.max_bodies_bytes = static_cast<size_t>(*memory);
  if (!o.token_file.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(http.bearer_token, read_token(o.token_file));
  }
  return http;
}

// What HTTP and gRPC show to their clients; empty without the flags.
Result<TlsIdentity> tls_identity(const ServeFlags& o) {
  if (o.tls_cert.empty() != o.tls_key.empty())
    return invalid_input("--tls-cert and --tls-key need each other; one of them is missing");
  if (o.tls_cert.empty()) return TlsIdentity{};
  return read_tls_identity(o.tls_cert, o.tls_key);
}

Result<LivePlaneOptions> plane_options(const ServeFlags& o, SchedulerKind by_default) {
  LivePlaneOptions plane;
  plane.scheduler = by_default;
  if (!o.scheduler.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(plane.scheduler, scheduler_flag(o.scheduler));
  }
  if (!o.guard.empty()) {
    const auto guard = parse_time_us(o.guard);
    if (!guard || !(*guard >= 0) || *guard > 1e9) return flag_error("--guard", o.guard, "a time such as 2ms");
    plane.dispatch.guard_ns = ns_from_us(*guard);
  }
  return plane;
}

Status check_plan_flags(const ServeFlags& o) {
  if (const char* flag = first_given({{"--devices", !o.devices.empty()},
                                      {"--cluster", !o.workers.cluster.empty()},
                                      {"--plan-for", !o.plan_for.empty()},
                                      {"--shape", !o.shapes.empty()},
                                      {"--value", !o.values.empty()},
                                      {"--max-batch", o.max_batch.has_value()},
                                      {"--adapt", o.adapt},
                                      {"--precision", !o.precision.empty()},
                                      {"--calibration", !o.calibration.folder.empty()},
                                      {"--decisions", !o.calibration.decisions.empty()}}))
    return invalid_input(std::string(flag) + ": a plan file says how its model runs; plan again with other " +
                         "flags of `heddle plan`");
  if (const char* flag = o.varying.first())
    return invalid_input(std::string(flag) + ": a plan file has one shape; serve the model itself");
  return {};
}

Result<std::unique_ptr<LocalServer>> serve_models(const ServeFlags& o, InferService& service,
                                                  const Invocation& invocation, What what,
                                                  const OpenedPlan* on_ranks) {
  if (what == What::kPlan) {
    HEDDLE_RETURN_IF_ERROR(check_plan_flags(o));
  } else if (o.in_flight) {
    return invalid_input("--in-flight is for a plan file; models are planned by the server itself");
  }
  if (o.drift.any())
    return invalid_input(
        "--replan-drift, --trial, --try-changes and --device-times are for a fleet file; models "
        "are measured and planned by the server itself");
  if (o.standby.any()) return invalid_input("--state is for a fleet file; models and plans have no standby");
  if (const char* flag = first_given({{"--workers", o.workers.workers.has_value()},
                                      {"--worker-port", o.workers.worker_port.has_value()},
                                      {"--bus", !o.workers.bus.empty()},
                                      {"--plan", !o.plan.empty()},
                                      {"--clock", o.clock != 1}}))
    return invalid_input(std::string(flag) + " is for a fleet file; models are planned by the server itself");
  ModelSettings defaults;
  HEDDLE_ASSIGN_OR_RETURN(defaults.shapes, parse_shapes(o.shapes));
  HEDDLE_ASSIGN_OR_RETURN(defaults.values, parse_values(o.values));
  HEDDLE_ASSIGN_OR_RETURN(defaults.varying, o.varying.settings());
  HEDDLE_RETURN_IF_ERROR(o.sessions.set(defaults));
  defaults.max_batch = static_cast<int>(o.max_batch.value_or(defaults.max_batch));
  if (!o.slo.empty()) {
    const auto slo = parse_time_us(o.slo);
    if (!slo || !(*slo >= 1) || *slo > 3.6e9) return flag_error("--slo", o.slo, "a time such as 50ms");
    defaults.slo_us = *slo;
  }
  LocalServerOptions options;
  HEDDLE_ASSIGN_OR_RETURN(options.plane, plane_options(o, SchedulerKind::kReactive));
  options.devices = split_list(o.devices);
  if (what == What::kModels && !o.workers.cluster.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(options.cluster, open_cluster(o.workers.cluster));
  }
  HEDDLE_ASSIGN_OR_RETURN(options.variants, variant_settings("", o.precision, o.budget));
  if (options.variants.precisions.size() > 1)
    return invalid_input("--precision " + o.precision +
                         ": a server's devices compute in one type; give one, or budget");
  HEDDLE_RETURN_IF_ERROR(o.calibration.settings(options.calibration, options.decisions));
  options.in_flight = static_cast<int>(o.in_flight.value_or(0));
  options.on_ranks = on_ranks;
  options.adapt = o.adapt;
  if (o.plan_for == "rate") {
    options.choice = LocalChoice::kRate;
  } else if (!o.plan_for.empty() && o.plan_for != "goodput") {
    const std::vector<std::string> names = {"goodput", "rate"};
    return invalid_input("--plan-for " + o.plan_for + ": expected goodput or rate" +
                         did_you_mean(o.plan_for, names));
  }
  options.deadline = Deadline::never(invocation.cancel);
  options.progress = invocation.progress;
  HEDDLE_ASSIGN_OR_RETURN(auto sources, find_models(o.what, defaults));
  return LocalServer::create(service, std::move(sources), options);
}

Result<std::unique_ptr<FleetControl>> serve_fleet(const ServeFlags& o, InferService& service,
                                                  std::unique_ptr<ServedWorkers>& workers,
                                                  std::unique_ptr<MachineFleet>& machine,
                                                  Succession* succession, const Invocation& invocation) {
  if (const char* flag = first_given({{"--devices", !o.devices.empty()},
                                      {"--slo", !o.slo.empty()},
                                      {"--shape", !o.shapes.empty()},
                                      {"--plan-for", !o.plan_for.empty()},
                                      {"--in-flight", o.in_flight.has_value()},
                                      {"--adapt", o.adapt},
                                      {"--precision", !o.precision.empty()},
                                      {"--budget", !o.budget.empty()},
                                      {"--calibration", !o.calibration.folder.empty()},
                                      {"--decisions", !o.calibration.decisions.empty()}}))
    return invalid_input(std::string(flag) + " is for models and plans; a fleet file has its own");
  if (const char* flag = o.sessions.of_models())
    return invalid_input(std::string(flag) + " is for models and plans; models of a fleet have no sessions");
  if (const char* flag = o.varying.first())
    return invalid_input(std::string(flag) +
                         ": a fleet file gives each model one shape; serve the model itself");
  FleetControlOptions options;
  HEDDLE_RETURN_IF_ERROR(o.drift.set(options));
  options.log = log_line;
  HEDDLE_ASSIGN_OR_RETURN(auto plane, plane_options(o, SchedulerKind::kReservation));
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.what.front()));
  HEDDLE_ASSIGN_OR_RETURN(const auto cluster, o.workers.cluster_for(fleet));
  const char* const only_timed = o.clock != 1 ? "--clock" : options.device_times ? "--device-times" : nullptr;
  if (has_model_files(fleet) && only_timed != nullptr)
    return invalid_input(
        std::string(only_timed) + ": the models of " + o.what.front() +
        " have files and run here in real time; remove \"file\" to serve them on emulated devices");
  if (o.guard.empty()) {
    double us = kMostGuard_us;
    for (const auto& m : fleet.models) us = std::min(us, m.slo_us * o.clock * kGuardShare);
    plane.dispatch.guard_ns = ns_from_us(us);
  }
  HEDDLE_ASSIGN_OR_RETURN(
      const auto first, first_plan({o.what.front(), o.plan, o.standby.state}, fleet, succession, invocation));
  options.save = first.save;
  options.succession = succession;
  options.plane = plane;
  options.clock = o.clock;
  if (only_timed == nullptr) {
    MachineFleetOptions machine_options;
    machine_options.plane = plane;
    machine_options.cluster = cluster;
    machine_options.deadline = Deadline::never(invocation.cancel);
    machine_options.progress = invocation.progress;
    machine = MachineFleet::create(machine_options);
    options.machine = machine.get();
  }
  if (o.workers.any()) {
    HEDDLE_ASSIGN_OR_RETURN(workers,
                            start_workers(o.workers, fleet, o.tls_cert, o.tls_key,
                                          succession != nullptr ? succession->term() : 0, invocation.cancel));
    options.workers = workers->pool.get();
    options.wait_s = o.workers.wait_s;
    options.cancel = invocation.cancel;
  }
  if (!first.saved.empty()) return FleetControl::resume(service, first.saved, options);
  return FleetControl::create(service, fleet, first.plan, options);
}

void announce(const InferService& service, const ServeFlags& o, int port, int grpc_port,
              const Invocation& invocation) {
  if (invocation.progress) invocation.progress->finish();
  auto status = service.status();
  if (invocation.json) {
    status["host"] = o.host;
    status["port"] = port;
    status["grpc_port"] = grpc_port;
    print("{}\n", json_text(status));
  } else {
    print("{}", pools_table(status));
    for (const auto& m : status["models"])
      if (!m["note"].get<std::string>().empty())
        print("{}: {}\n", m["name"].get<std::string>(), m["note"].get<std::string>());
    print("serving on {}://{}:{} and grpc{}://{}:{}, Ctrl-C stops\n", o.tls_key.empty() ? "http" : "https",
          o.host, port, o.tls_key.empty() ? "" : "s", o.host, grpc_port);
  }
  std::fflush(stdout);
}

// Until a signal, or until another server has taken over, upon which it raises `lost`. `on_ranks`: see serve().
Status serve_once(const ServeFlags& o, const Invocation& invocation, const OpenedPlan* on_ranks,
                  const CancelToken& lost) {
  if (o.port != 0 && o.port == o.grpc_port)
    return invalid_input("--port and --grpc-port are one port; give two");
  HEDDLE_ASSIGN_OR_RETURN(auto http, http_options(o));
  HEDDLE_ASSIGN_OR_RETURN(const auto tls, tls_identity(o));
  if (!tls.key.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(http.tls, with_context(TlsContext::server(tls), o.tls_cert + ", " + o.tls_key));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto tracer, o.traces.open());
  std::unique_ptr<Succession> succession;
  std::unique_ptr<ServedWorkers> workers;  // these outlive the service
  std::unique_ptr<MachineFleet> machine;
  InferService service;
  service.set_tracer(tracer.get());
  HEDDLE_ASSIGN_OR_RETURN(const auto limits, o.sessions.limits());
  service.set_session_limits(limits);
  service.set_max_memory(http.max_bodies_bytes);
  std::unique_ptr<LocalServer> local;
  std::unique_ptr<FleetControl> fleet;
  const What what = what_is_served(o.what);
  std::atomic<bool> serves = false;
  const auto handle = [&](const HttpHead& head, const HttpBody& body, const HttpReply& reply) {
    if (!serves.load()) return answer_as_standby(*succession, head, reply);
    if (!fleet || !fleet->answer(head, body, reply)) answer_rest(service, head, body, reply);
  };
  std::unique_ptr<HttpServer> server;
  if (what == What::kFleet) {
    HEDDLE_ASSIGN_OR_RETURN(succession,
                            o.standby.open(o.workers.bucket, o.workers.lease_s, invocation.cancel, lost));
    if (succession) {  // a standby answers probes
      HEDDLE_ASSIGN_OR_RETURN(server, HttpServer::start(http, handle));
      HEDDLE_RETURN_IF_ERROR(wait_to_lead(*succession, invocation.cancel));
    }
    Invocation leading = invocation;
    leading.cancel = lost;
    HEDDLE_ASSIGN_OR_RETURN(fleet, serve_fleet(o, service, workers, machine, succession.get(), leading));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(local, serve_models(o, service, invocation, what, on_ranks));
  }
  if (local) HEDDLE_RETURN_IF_ERROR(limit_to_http_rate(service, invocation.cancel));
  serves = true;
  if (!server) {
    HEDDLE_ASSIGN_OR_RETURN(server, HttpServer::start(http, handle));
  }
  GrpcServerOptions grpc_options;
  grpc_options.host = o.host;
  grpc_options.port = static_cast<int>(o.grpc_port);
  grpc_options.max_message_bytes = http.max_body_bytes;
  grpc_options.max_memory_bytes = http.max_bodies_bytes;
  grpc_options.bearer_token = http.bearer_token;
  grpc_options.tls = tls;
  grpc_options.rate = http.rate;
  grpc_options.max_streams = http.max_connections;
  HEDDLE_ASSIGN_OR_RETURN(const auto grpc, GrpcServer::start(grpc_options, service));
  announce(service, o, server->port(), grpc->port(), invocation);
  FileWatch watch(what == What::kModels ? "" : o.what.front());
  while (!lost.cancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (what == What::kModels || !watch.changed()) continue;
    if (fleet)
      follow_fleet(o.what.front(), *fleet);
    else
      follow_plan(o.what.front(), service, service.index().front().name);
  }
  // Another server has the workers: what is in flight here gets no answer.
  const bool ends = invocation.cancel.cancelled();
  const double drain_s = ends ? o.drain_s : 0;
  if (ends) log_line(LogLevel::kInfo, "stopping once the requests in flight are answered");
  // What was accepted is answered. gRPC waits for all of its calls, so the service gives up what is left of them.
  const Stopwatch since;
  if (local) local->stop();
  if (fleet) fleet->stop();
  auto ended = std::async(std::launch::async, [&grpc, drain_s] { grpc->stop(drain_s); });
  server->stop(drain_s);
  ended.wait_for(std::chrono::duration<double>(drain_s - since.seconds()));
  service.stop(std::max(0., drain_s - since.seconds()));
  ended.wait();
  if (!invocation.json) {
    uint64_t answered = 0, all = 0;
    for (const auto& [name, s] : service.all_statistics())
      for (size_t f = 1; f < static_cast<size_t>(Outcome::kInvalid); ++f) {
        all += s.requests[f];
        if (f <= static_cast<size_t>(Outcome::kLate)) answered += s.requests[f];
      }
    print("stopped: {} of {} requests answered\n", answered, all);
  }
  return {};
}

// `on_ranks`: the plan file's plan, opened on several ranks, of which this is rank 0; null: all runs here. A server
// that was replaced stands by for its successor.
Result<int> serve(const ServeFlags& o, const Invocation& invocation, const OpenedPlan* on_ranks) {
  for (;;) {
    const CancelToken lost = invocation.cancel.inner();
    const Status served = serve_once(o, invocation, on_ranks, lost);
    const bool replaced = lost.cancelled() && !invocation.cancel.cancelled();
    if (!replaced && !served.ok()) return served.error();
    if (!replaced) return kExitDone;
    log_line(LogLevel::kInfo, "standing by");
  }
}

Status begin_log_and_check(const ServeFlags& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(o.log.begin(invocation));
  HEDDLE_RETURN_IF_ERROR(o.workers.check());
  const bool ranks = rank_environment().size > 1;
  if (!ranks && !o.rank_devices.empty())
    return invalid_input("--rank-devices needs several ranks: start Heddle as mpirun -n N heddle serve PLAN");
  // Rank 0 alone reads the file: it need not be on the other ranks' hosts.
  if (ranks && (o.what.size() != 1 || !o.what.front().ends_with(".json")))
    return unsupported("only a plan file (.json) is served by several ranks; start Heddle without mpirun");
  return ranks ? check_plan_flags(o) : Status();
}

// Every rank comes here. The thread that opens the transport moves all messages, so rank 0 listens on another
// thread. The other ranks serve until rank 0 stops; signals stop rank 0 alone.
Result<int> serve_on_ranks(const ServeFlags& o, RankGroup& group, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto opened,
                          open_plan_on_ranks(group, o.what.front(), o.rank_devices,
                                             static_cast<int>(o.in_flight.value_or(0)), invocation));
  std::future<Result<int>> server;
  if (group.rank() == 0) {
    server = std::async(std::launch::async, [&] {
      // However the server ends, the ranks end with it.
      struct Closing {
        Executor& executor;
        ~Closing() { executor.close(); }
      } closing{*opened.executor};
      return serve(o, invocation, &opened);
    });
  }
  const Status served = opened.executor->serve_ranks(invocation.cancel);
  auto ended = server.valid() ? server.get() : Result<int>(kExitDone);
  if (!served.ok()) return failed_on_ranks(served.error());
  return ended;
}

Result<int> run_serve(const ServeFlags& o, const Invocation& invocation) {
  const Status checked = begin_log_and_check(o, invocation);
  const auto on_rank = [&](RankGroup& group) { return serve_on_ranks(o, group, invocation); };
  if (rank_environment().size > 1) return run_verb_on_ranks(invocation, checked, on_rank);
  HEDDLE_RETURN_IF_ERROR(checked);
  return serve(o, invocation, nullptr);
}

}  // namespace

RunFn setup_serve(Command& command) {
  auto o = std::make_shared<ServeFlags>();
  command.positionals(
      "WHAT", o->what,
      "models (.onnx or what OpenVINO reads) or folders of MODEL/VERSION/model.onnx, served "
      "here; or one plan file (.json, from heddle plan -o); or one fleet file (.json, .yaml): "
      "models with a file run on the devices that it names, others on emulated ones");
  command.group("Address and clients");
  command.option("--host", o->host, "address to listen on (default 127.0.0.1: this machine alone)");
  command.option("--port", o->port, "HTTP port (default 8000; 0: any free one)", 0, 65535);
  command.option("--grpc-port", o->grpc_port, "gRPC port (default 8001; 0: any free one)", 0, 65535);
  command.option("--max-body", o->max_body, "largest body of a request (default 64MiB)");
  command.option("--max-memory", o->max_memory,
                 "most memory for bodies of HTTP in flight, and as much each for gRPC's messages and for the "
                 "outputs and padded inputs of all requests (default 1GiB)");
  command.option("--max-connections", o->max_connections,
                 "HTTP connections at once, gRPC calls of one connection (default 1024)", 1, 100000);
  command.rate("--max-rate", o->max_rate, "most requests, HTTP and gRPC together (default: any)", 0, 1e9);
  command.option("--tls-cert", o->tls_cert, "encrypt HTTP and gRPC: the server's certificates (PEM)");
  command.option("--tls-key", o->tls_key, "the certificate's private key (PEM, no passphrase)");
  command.list("--allow-host", o->host_names,
               "on a loopback address: a host name that clients may call this server by (repeatable)");
  command.option("--token-file", o->token_file, "require this file's content as a bearer token from clients");
  command.seconds("--drain", o->drain_s,
                  "time that requests in flight have to finish after Ctrl-C (default 10s)", 0, 3600);
  command.group("Models and plans");
  command.option(
      "--slo", o->slo,
      "models, plan: from arrival to answer, such as 50ms (default: 10 times a request's measured time, at "
      "least 1s)");
  command.option("--max-batch", o->max_batch, "models: largest batch (default 8)", 1, kMostServedBatch);
  command.option("--in-flight", o->in_flight,
                 "plan: requests at once (default 1; for throughput as many as keep its devices busy)", 1,
                 kMostInFlight);
  command.option("--rank-devices", o->rank_devices,
                 "plan, under mpirun: the devices of each rank, A,B;C (default: by host, docs/hosts.md)");
  command.list("--shape", o->shapes, "models: set an input's shape: NAME=1,3,224,224 (repeatable)");
  command.list("--value", o->values, "models: make an .onnx input a constant: NAME=2,3 (repeatable)");
  o->varying.declare(command);
  o->sessions.declare(command);
  command.option(
      "--cluster", o->workers.cluster,
      "models, fleet: cluster file with the devices that are used and named (default: this machine's, "
      "as `heddle devices` finds them)");
  command.option("--devices", o->devices, "models: use only these devices (comma-separated names)");
  command.flag("--adapt", o->adapt,
               "models: compile for fewer cores, too, and use them while other work slows runs on all");
  command.option(
      "--precision", o->precision,
      "models: f32, tf32, bf16, fp16, auto for what the engine takes by itself (default auto), or budget: "
      "f32 for models whose error in that type is too large");
  declare_budget(command, o->budget);
  o->calibration.declare(command);
  command.option(
      "--plan-for", o->plan_for,
      "models: goodput (default: the arrangement that serves most in time when simulated, with "
      "devices of each model's own or shared by all) or rate (the greatest least rate, each on its "
      "own devices)");
  command.group("Scheduling");
  command.option(
      "--scheduler", o->scheduler,
      "reservation (default for fleets), busy-until or reactive (default for models: begins at once)");
  command.option("--guard", o->guard,
                 "time that reservations keep free before each deadline (default for fleets: a twentieth of "
                 "the least SLO, 2ms at most; for models 0)");
  command.group("Fleet");
  command.option("--plan", o->plan, "fleet: a plan file (default: planned by auto)");
  command.option("--clock", o->clock,
                 "fleet: multiply all times by this, for machines too small for its load", .01, 100);
  command.group("Workers");
  o->workers.declare(command);
  command.group("Standby");
  o->standby.declare(command);
  command.group("Devices that drift");
  o->drift.declare(command);
  command.group("Traces");
  o->traces.declare(command);
  command.group("");
  o->log.declare(command);
  return [o](const Invocation& invocation) { return run_serve(*o, invocation); };
}

}  // namespace heddle::cli
