// The speed part of the ppipe suite: the simulator on every plan of the simulated part, its decisions, and a
// two-stage pipeline beside SimGrid's where heddle-simgrid was built.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "bench_ppipe_cases.h"
#include "heddle/base/json.h"
#include "heddle/base/quantiles.h"

namespace heddle::bench {
namespace {

constexpr int kSpeedRepeats = 3;  // the fastest counts: the others shared their caches with other work

// Processor time: what one core does, also where others use it, too.
double processor_seconds_since(std::clock_t began) {
  return std::max(1e-6, static_cast<double>(std::clock() - began) / static_cast<double>(CLOCKS_PER_SEC));
}

struct Speed {
  double events_per_s = 0, requests_per_s = 0;
};

Result<Speed> fastest(const Deployment& deployment, std::span<const Arrival> arrivals,
                      const SimulationOptions& options) {
  Speed best;
  for (int i = 0; i < kSpeedRepeats; ++i) {
    const std::clock_t began = std::clock();
    HEDDLE_ASSIGN_OR_RETURN(const auto simulated, simulate(deployment, arrivals, options));
    const double seconds = processor_seconds_since(began);
    // Arrivals and ends of runs and transfers. Other simulators have no scheduler that wakes.
    best.events_per_s =
        std::max(best.events_per_s, static_cast<double>(simulated.events - simulated.wakes) / seconds);
    best.requests_per_s =
        std::max(best.requests_per_s, static_cast<double>(simulated.total.arrivals) / seconds);
  }
  return best;
}

// Each plan at load factor 1.
Status add_plans(const PpipePlans& plans, const PpipeBench& bench, std::vector<BenchRow>& rows) {
  std::vector<double> all;
  for (const auto& c : plans.cases) {
    if (c.scheduler != SchedulerKind::kReservation || c.traffic != 0) continue;
    SimulationOptions o;
    o.seed = static_cast<uint64_t>(bench.options.seed);
    o.cancel = bench.control.cancel;
    o.horizon = ns_from_us(kPpipeSeconds * 1e6);
    HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, make_arrivals({}, c.rates, kPpipeSeconds, o.seed));
    HEDDLE_ASSIGN_OR_RETURN(const auto speed, fastest(*c.deployment, arrivals, o));
    rows.push_back(ppipe_row(ppipe_instance(c), c.planner, c.planner + ", events", "/s", speed.events_per_s));
    rows.push_back(
        ppipe_row(ppipe_instance(c), c.planner, c.planner + ", requests", "/s", speed.requests_per_s));
    all.push_back(speed.events_per_s);
  }
  if (all.empty()) return {};
  rows.push_back(ppipe_row("simulator speed", "", "events, slowest plan", "/s",
                           *std::min_element(all.begin(), all.end())));
  rows.back().reference = 5e6;
  rows.push_back(ppipe_row("simulator speed", "", "events, median plan", "/s", median_us(all)));
  return {};
}

// On the plan with the most pipelines.
Status add_decision_times(const PpipePlans& plans, const PpipeBench& bench, std::vector<BenchRow>& rows) {
  const PpipeCase* most = nullptr;
  for (const auto& c : plans.cases)
    if (c.scheduler == SchedulerKind::kReservation && c.traffic == 0 &&
        (most == nullptr || c.deployment->pipelines.size() > most->deployment->pipelines.size()))
      most = &c;
  if (most == nullptr) return {};
  const double duration_s = 4 * kPpipeSeconds;
  SimulationOptions o;
  o.seed = static_cast<uint64_t>(bench.options.seed);
  o.cancel = bench.control.cancel;
  o.horizon = ns_from_us(duration_s * 1e6);
  o.time_decisions = true;
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, make_arrivals({}, most->rates, duration_s, o.seed));
  HEDDLE_ASSIGN_OR_RETURN(const auto timed, simulate(*most->deployment, arrivals, o));
  const auto add = [&](const char* metric, double value_us, double reference_us) {
    rows.push_back(ppipe_row(ppipe_instance(*most) + ", decisions", most->planner, metric, "us", value_us));
    rows.back().reference = reference_us;
  };
  add("decision, median", us_from_ns(timed.decision.percentile(.5)), 1);
  add("decision, p99", us_from_ns(timed.decision.percentile(.99)), 5);
  add("decision, mean", timed.decision.mean_ns() / 1e3, 9);
  rows.back().reference_source = "PPipe, section 7.2";
  return {};
}

// The pipeline that heddle-simgrid plays, too.
struct TwoStages {
  uint32_t requests = 40000, first_hosts = 25, second_hosts = 75;
  double rate_per_s = 2000, first_us = 10000, transfer_us = 1000, second_us = 30000;
};

Deployment deployment_of(const TwoStages& s) {
  Deployment d;
  const TimeNs first = ns_from_us(s.first_us), send = ns_from_us(s.transfer_us),
               second = ns_from_us(s.second_us);
  // Whatever waits is served: SimGrid's pipeline drops nothing.
  d.models.push_back({"two stages", 3600 * kNsPerSecond, s.rate_per_s, {0}});
  d.classes = {{"first", s.first_hosts, 0, s.first_hosts},
               {"second", s.second_hosts, s.first_hosts, s.second_hosts}};
  d.num_servers = s.first_hosts + s.second_hosts;
  for (uint32_t v = 0; v < d.num_servers; ++v)
    d.devices.push_back({.device_class = v < s.first_hosts ? 0u : 1u, .device = v, .server = v});
  d.pipelines.push_back(
      {0,
       1,
       s.rate_per_s,
       {{0, s.first_hosts, {first}, {}, {"two stages", 0, 1, "first", 1}},
        {s.first_hosts, s.second_hosts, {second}, {send}, {"two stages", 1, 2, "second", 1}}}});
  return d;
}

// The program's standard output, at most some kilobytes; nullopt where it cannot be run or fails.
std::optional<std::string> output_of(const std::string& program, const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const auto& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = -1;
  const int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[1024];
  if (failed == 0)
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0 && text.size() < 65536;)
      text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = -1;
  if (failed != 0 || waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  return text;
}

Status add_simgrid(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  const TwoStages s;
  const auto deployment = deployment_of(s);
  SimulationOptions o;
  o.seed = static_cast<uint64_t>(bench.options.seed);
  o.cancel = bench.control.cancel;
  const std::vector<double> rates = {s.rate_per_s};
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, make_arrivals({}, rates, s.requests / s.rate_per_s, o.seed));
  HEDDLE_ASSIGN_OR_RETURN(const auto ours, fastest(deployment, arrivals, o));
  const auto add = [&](const char* metric, double value) {
    rows.push_back(ppipe_row("two stages, 25 and 75 devices", "", metric, "/s", value));
  };
  add("events", ours.events_per_s);
  add("requests", ours.requests_per_s);

  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string program = (self.parent_path() / "heddle-simgrid").string();
  if (access(program.c_str(), X_OK) != 0) {
    std::fprintf(stderr,
                 "speed: no SimGrid beside it; install SimGrid (Debian: libsimgrid-dev) and build again\n");
    return {};
  }
  double events_per_s = 0, requests_per_s = 0;
  std::string version;
  for (int i = 0; i < kSpeedRepeats; ++i) {
    const auto text = output_of(
        program, {std::to_string(s.requests), std::to_string(s.first_hosts), std::to_string(s.second_hosts),
                  std::to_string(s.rate_per_s), std::to_string(s.first_us), std::to_string(s.transfer_us),
                  std::to_string(s.second_us)});
    const Json json = text ? Json::parse(*text, nullptr, false) : Json();
    if (!json.is_object() || json.value("processor_s", 0.) <= 0) {
      std::fprintf(stderr, "speed: %s failed; it stands without SimGrid's figures\n", program.c_str());
      return {};
    }
    const double seconds = json.value("processor_s", 0.);
    events_per_s = std::max(events_per_s, json.value("events", 0.) / seconds);
    requests_per_s = std::max(requests_per_s, json.value("requests", 0.) / seconds);
    version = "SimGrid " + json.value("version", std::string());
  }
  for (size_t back : {1, 2}) {
    BenchRow& row = rows[rows.size() - back];
    row.beside(version, back == 1 ? requests_per_s : events_per_s);
  }
  return {};
}

}  // namespace

Status bench_ppipe_speed(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, bench.options));
  HEDDLE_RETURN_IF_ERROR(add_plans(plans, bench, rows));
  HEDDLE_RETURN_IF_ERROR(add_decision_times(plans, bench, rows));
  HEDDLE_RETURN_IF_ERROR(add_simgrid(bench, rows));
  return {};
}

}  // namespace heddle::bench
