// How far one server goes: what its dispatcher, HTTP, its sessions with workers, the bus and the network carry, beside
// what the devices of a large fleet could serve. What is smallest is the first bottleneck, and says how many servers
// the fleet needs (`heddle fleet split`).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "heddle/base/stopwatch.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/simulator.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "rows.h"
#include "serve_bench.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr double kScaleLoad = .8;
// A pipeline of two parts on five devices each, batches of up to four rows: 17 ms a batch, 1 ms on the link between.
constexpr uint32_t kDevicesOfPart = 5, kBatch = 4;
constexpr TimeNs kFirstRow_ns = 8'000'000, kFurtherRow_ns = 3'000'000, kTransfer_ns = 1'000'000,
                 kSlo_ns = 90'000'000;
constexpr double kMostSimulated = 300'000;  // requests
constexpr double kLease_s = 1, kDevicesOfWorker = 8;
// An image of 224 x 224 pixels in bytes; a network interface of 25 Gbit/s.
constexpr double kInputBytes = 3 * 224 * 224, kNic_bytes_per_s = 25e9 / 8;
constexpr int kCallsUnderWay = 64;
constexpr double kScaleSeconds = 5;

Deployment large_deployment(uint32_t models) {
  Deployment d;
  d.classes = {{"front", int64_t{models} * kDevicesOfPart, 0, models * kDevicesOfPart},
               {"back", int64_t{models} * kDevicesOfPart, models * kDevicesOfPart, models * kDevicesOfPart}};
  const double rate = kDevicesOfPart * kBatch / seconds_from_ns(kFirstRow_ns + (kBatch - 1) * kFurtherRow_ns);
  for (uint32_t m = 0; m < models; ++m) {
    const auto name = "model-" + std::to_string(m);
    d.models.push_back({name, kSlo_ns, rate, {m}});
    DeployedPipeline pipeline;
    pipeline.model = m;
    pipeline.batch = kBatch;
    pipeline.rate_per_s = rate;
    for (uint32_t part = 0; part < 2; ++part) {
      DevicePool pool;
      pool.first_device = static_cast<uint32_t>(d.devices.size());
      pool.num_devices = kDevicesOfPart;
      pool.role = {name, static_cast<int>(part), static_cast<int>(part) + 1, d.classes[part].name, 1};
      for (uint32_t b = 0; b < kBatch; ++b) {
        pool.run_ns.push_back(kFirstRow_ns + b * kFurtherRow_ns);
        if (part > 0) pool.transfer_ns.push_back((b + 1) * kTransfer_ns / kBatch);
      }
      for (uint32_t i = 0; i < kDevicesOfPart; ++i) {
        VirtualDevice device;
        device.device_class = part;
        device.device = part * models * kDevicesOfPart + m * kDevicesOfPart + i;
        device.server = static_cast<uint32_t>(d.devices.size());
        d.devices.push_back(device);
      }
      pipeline.partitions.push_back(std::move(pool));
    }
    d.pipelines.push_back(std::move(pipeline));
  }
  d.num_servers = static_cast<uint32_t>(d.devices.size());
  return d;
}

struct Dispatched {
  double offered_per_s = 0;
  double carried_per_s = 0;  // by one thread: arrivals, decisions, ends of work
  double attainment = 0;
  double batches_per_s = 0;  // first runs
};

Result<Dispatched> dispatch(uint32_t models, int64_t seed, const Control& control) {
  const auto deployment = large_deployment(models);
  HEDDLE_RETURN_IF_ERROR(check_deployment(deployment));
  std::vector<double> rates;
  Dispatched out;
  for (const auto& m : deployment.models) {
    rates.push_back(kScaleLoad * m.rate_per_s);
    out.offered_per_s += rates.back();
  }
  const double seconds = std::min(10.0, kMostSimulated / out.offered_per_s);
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals,
                          make_arrivals({}, rates, seconds, static_cast<uint64_t>(seed)));
  SimulationOptions options;
  options.cancel = control.cancel;
  const Stopwatch watch;
  HEDDLE_ASSIGN_OR_RETURN(const auto result, simulate(deployment, arrivals, options));
  out.carried_per_s = static_cast<double>(arrivals.size()) / watch.seconds();
  out.attainment = result.total.attainment();
  uint64_t batches = 0;
  for (const auto& m : result.models)
    for (const uint64_t runs : m.batch_sizes) batches += runs;
  out.batches_per_s = static_cast<double>(batches) / seconds;
  return out;
}

// Renewals of leases a second that a server's registry takes, by gRPC from four threads.
Result<double> registry_rate(double seconds) {
  HEDDLE_ASSIGN_OR_RETURN(const auto bus, in_process_bus({.lease_s = kLease_s}));
  HEDDLE_ASSIGN_OR_RETURN(const auto registry, WorkerRegistry::start("127.0.0.1", 0, *bus));
  const auto address = "127.0.0.1:" + std::to_string(registry->port());
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<Announcer>> announcers(kThreads);
  for (auto& announcer : announcers) {
    HEDDLE_ASSIGN_OR_RETURN(announcer, registry_announcer(address));
  }
  std::atomic<int64_t> renewed = 0, failed = 0;
  const Stopwatch watch;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto& announcer = announcers[static_cast<size_t>(t)];
      while (watch.seconds() < seconds)
        ++(announcer->announce("worker-" + std::to_string(t), "{}").ok() ? renewed : failed);
    });
  threads.clear();
  if (failed > 0 || renewed == 0) return internal_error("the registry refused renewals");
  return static_cast<double>(renewed) / watch.seconds();
}

// Answers a second of a server whose workers are in this process, by gRPC, on devices that take next to no time.
// `parts` 1: a run a request, on four workers. 2: every request's feature map goes from the one worker to the other.
Result<double> workers_rate(int parts, double seconds) {
  constexpr int64_t kDevices = 32;
  constexpr int kWorkersOfOnePart = 4;
  Fleet fleet;
  fleet.name = "quick";
  FleetModel net;
  net.name = "net";
  net.blocks = parts;
  net.slo_us = 10e6;
  net.cut_bytes.assign(static_cast<size_t>(parts) + 1, 1000);
  for (int c = 0; c < parts; ++c) {
    fleet.classes.push_back(
        {.name = "class-" + std::to_string(c), .count = kDevices, .nic_bytes_per_s = 1e11});
    std::vector<double> blocks(static_cast<size_t>(parts), 10'000);  // each class is for its own part
    blocks[static_cast<size_t>(c)] = 100;
    net.latency_us.push_back({{blocks}});
  }
  fleet.models = {net};
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto", {}));
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<WorkerBus> bus, in_process_bus({.lease_s = kLease_s}));
  HEDDLE_ASSIGN_OR_RETURN(const auto pool, WorkerPool::create(bus, {}));
  std::vector<std::unique_ptr<Worker>> workers;
  const int count = parts == 1 ? kWorkersOfOnePart : parts;
  for (int w = 0; w < count; ++w) {
    WorkerOptions options;
    options.name = "worker-" + std::to_string(w);
    options.devices = {{fleet.classes[static_cast<size_t>(w % parts)].name, kDevices * parts / count}};
    HEDDLE_ASSIGN_OR_RETURN(workers.emplace_back(), Worker::start(options, *bus));
  }
  const WorkerWait wait{*pool, 20, WaitFor::kAll, {}};
  HEDDLE_ASSIGN_OR_RETURN(auto next, timed_generation(fleet, plan, {}, 1, nullptr, &wait));
  InferService service;
  service.serve(std::move(next));
  const std::string payload(1024, 'x');
  std::atomic<int64_t> answered = 0, failed = 0;
  std::atomic<int> open = kCallsUnderWay;
  std::promise<void> done;
  const Stopwatch watch;
  std::function<void()> ask = [&] {
    InferRequest request;
    request.model = "net";
    request.inputs.push_back({"payload",
                              DType::kU8,
                              {static_cast<int64_t>(payload.size())},
                              reinterpret_cast<const std::byte*>(payload.data()),
                              static_cast<int64_t>(payload.size()),
                              nullptr});
    service.infer(std::move(request), [&](const Result<InferResponse>& result) {
      ++(result.ok() ? answered : failed);
      if (watch.seconds() < seconds && result.ok()) return ask();
      if (--open == 0) done.set_value();
    });
  };
  for (int i = 0; i < kCallsUnderWay; ++i) ask();
  done.get_future().wait();
  const double rate = static_cast<double>(answered) / watch.seconds();
  service.stop(1);
  if (failed > 0) return internal_error("requests by workers failed");
  return rate;
}

// What each part of one server carries, in requests per second.
struct Carried {
  double http = 0, sessions = 0, renewals = 0;
  double maps = 0;  // feature maps from one worker to one other
};

void add_size(uint32_t models, const Dispatched& d, const Carried& one, std::vector<BenchRow>& rows) {
  const double devices = 2.0 * kDevicesOfPart * models, workers = devices / kDevicesOfWorker;
  const std::string instance = fmt::format("{:.0f} devices, {} models", devices, models);
  const auto add = [&](const std::string& metric, double value) -> BenchRow& {
    rows.push_back(bench_row("scale", instance, "serve", metric, "1/s", value));
    rows.back().beside(fmt::format("requests at load {}", kScaleLoad), d.offered_per_s);
    return rows.back();
  };
  // Each worker renews its lease four times in it; those of a request's share of the fleet count.
  const double renewals_per_request = 4 * workers / kLease_s / d.offered_per_s;
  const std::pair<const char*, double> parts[] = {
      {"dispatcher, one thread", d.carried_per_s},
      {"HTTP, one server", one.http},
      {"messages with workers, one server", one.sessions},
      {"leases of workers, one registry", one.renewals / renewals_per_request},
      {"inputs through 25 Gbit/s", kNic_bytes_per_s / kInputBytes}};
  const auto* least = std::ranges::min_element(parts, {}, [](const auto& p) { return p.second; });
  for (const auto& [name, value] : parts) add(name, value);
  // Of each worker's link, however many servers there are. Half of the workers have second parts.
  rows.push_back(bench_row("scale", instance, "serve", "feature maps to one worker", "1/s", one.maps));
  rows.back().beside(fmt::format("maps to each second part's worker at load {}", kScaleLoad),
                     d.batches_per_s / (workers / 2));
  rows.push_back(bench_row("scale", instance, "serve",
                           fmt::format("in time when simulated at load {}", kScaleLoad), "%",
                           100 * d.attainment));
  rows.push_back(bench_row("scale", instance, "serve",
                           std::string("servers needed; first bottleneck: ") + least->first, "",
                           std::ceil(d.offered_per_s / least->second)));
}

}  // namespace

Status bench_scale(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  const double seconds = options.time_limit_s > 0 ? options.time_limit_s : kScaleSeconds;
  Carried one;
  HEDDLE_ASSIGN_OR_RETURN(const auto copies,
                          bench_serving("", seconds, [&] { return control.cancel.cancelled(); }));
  one.http = copies.rate.http;
  HEDDLE_ASSIGN_OR_RETURN(one.sessions, workers_rate(1, seconds));
  HEDDLE_ASSIGN_OR_RETURN(one.maps, workers_rate(2, seconds));
  HEDDLE_ASSIGN_OR_RETURN(one.renewals, registry_rate(seconds));
  for (const uint32_t models : {10U, 100U, 1000U})
    HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const auto dispatched, dispatch(models, options.seed, control));
      add_size(models, dispatched, one, rows);
      return {};
    }));
  return {};
}

}  // namespace heddle::bench
