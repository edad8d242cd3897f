// heddle doctor: checks what Heddle needs of this machine, or a fleet that a server serves.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "doctor_fleet.h"
#include "doctor_simulate.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/cost/profile_store.h"
#include "heddle/runtime/backend.h"
#include "heddle/solve/self_test.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

enum class State { kOk, kAbsent, kFails };
constexpr const char* kStateNames[] = {"ok", "absent", "FAILS"};
constexpr Ink kStateInks[] = {Ink::kGreen, Ink::kYellow, Ink::kRed};

struct Check {
  std::string name;
  State state = State::kOk;
  std::string detail;
};

Check solver_check(const std::string& name, const Result<SolverSelfTest>& test) {
  if (!test.ok()) return {name, State::kFails, test.error().to_string()};
  return {name, State::kOk, fmt::format("{}: {} small models, all right", test->version, test->models)};
}

Check engine_check(const Backend& backend) {
  Device device;
  device.name = "the first core";
  device.kind = DeviceKind::kCpu;
  device.cores = {0};
  device.backend = backend.name();
  device.backend_device = backend.name() == "torch" ? "cpu" : "CPU";
  const auto precisions = backend.precisions(device);
  const auto opened = open_device(device);
  if (!precisions.ok() || !opened.ok())
    return {backend.name(), State::kAbsent, (opened.ok() ? precisions.error() : opened.error()).to_string()};
  std::string names;
  for (const Precision p : *precisions) names += (names.empty() ? "" : ", ") + std::string(precision_name(p));
  return {backend.name(), State::kOk, "runs on cores, in " + names};
}

Check gpu_check() {
  const auto gpus = local_gpus().gpus;
  if (gpus.empty()) return {"GPUs", State::kAbsent, "no backend finds one"};
  return {"GPUs", State::kOk, counted(gpus.size(), "GPU")};
}

// Measured times and the marks of imported models are kept there.
Check store_check() {
  const std::filesystem::path path = ProfileStore::default_path();
  auto folder = path.parent_path();
  std::error_code error;
  while (!folder.empty() && !std::filesystem::exists(folder, error)) folder = folder.parent_path();
  if (access(folder.c_str(), W_OK) != 0)
    return {"profile store", State::kFails, folder.string() + " cannot be written; give --store FILE"};
  if (!std::filesystem::exists(path, error))
    return {"profile store", State::kOk, path.string() + " will be made by the first measurement"};
  if (access(path.c_str(), R_OK | W_OK) != 0)
    return {"profile store", State::kFails, path.string() + " cannot be written; give --store FILE"};
  return {"profile store", State::kOk, path.string()};
}

// `heddle serve` listens there by default.
Check port_check(uint16_t port) {
  const std::string name = "port " + std::to_string(port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool free = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  if (free) return {name, State::kOk, "free"};
  return {name, State::kAbsent, "in use; give `heddle serve` another one"};
}

Result<int> run_doctor(const Invocation& invocation) {
  std::vector<Check> checks = {solver_check("HiGHS", highs_self_test()),
                               solver_check("CP-SAT", cp_sat_self_test())};
  for (const auto& backend : backend_registry())
    if (backend->computes()) checks.push_back(engine_check(*backend));
  checks.push_back(gpu_check());
  checks.push_back(store_check());
  for (const uint16_t port : {8000, 8001}) checks.push_back(port_check(port));
  Json rows = Json::array();
  TextTable table({{"check"}, {"state"}, {"detail"}});
  for (const Check& check : checks) {
    const char* state = kStateNames[static_cast<size_t>(check.state)];
    rows.push_back({{"check", check.name}, {"state", state}, {"detail", check.detail}});
    table.add_row({check.name, painted(kStateInks[static_cast<size_t>(check.state)], state), check.detail});
  }
  show_result(invocation, rows, table.to_string());
  const bool fails = std::ranges::count(checks, State::kFails, &Check::state) > 0;
  return fails ? kExitNo : kExitDone;
}

}  // namespace

RunFn setup_doctor(Command& command) {
  const auto flags = std::make_shared<SimulateFlags>();
  command.option("--simulate", flags->seeds,
                 "instead, simulate the service of a fleet with this many seeds of faults", 1, 1'000'000'000);
  command.option("--first-seed", flags->first_seed, "the first seed of --simulate (default 1)", 1,
                 1'000'000'000'000);
  const auto fleet = std::make_shared<FleetDoctorFlags>();
  fleet->declare(command);
  return [flags, fleet](const Invocation& invocation) -> Result<int> {
    const bool simulates = flags->seeds || flags->first_seed;
    if (!fleet->url.empty() && simulates)
      return invalid_input("--simulate and URL exclude each other: a running fleet is not simulated");
    if (const char* flag = fleet->first(); flag != nullptr && fleet->url.empty())
      return invalid_input(std::string(flag) + " needs the URL of a running fleet's server");
    if (!fleet->url.empty()) return run_fleet_doctor(*fleet, invocation);
    return simulates ? run_simulations(*flags, invocation) : run_doctor(invocation);
  };
}

}  // namespace heddle::cli
