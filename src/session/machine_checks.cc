#include "heddle/session/machine_checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "heddle/base/spelling.h"
#include "heddle/cost/profile_store.h"
#include "heddle/runtime/backend.h"
#include "heddle/solve/self_test.h"

namespace heddle {
namespace {

MachineCheck solver_check(const std::string& name, const Result<SolverSelfTest>& test) {
  if (!test.ok()) return {name, CheckState::kFails, test.error().to_string()};
  return {name, CheckState::kOk, fmt::format("{}: {} small models, all right", test->version, test->models)};
}

MachineCheck engine_check(const Backend& backend) {
  Device device;
  device.name = "the first core";
  device.kind = DeviceKind::kCpu;
  device.cores = {0};
  device.backend = backend.name();
  device.backend_device = backend.name() == "torch" ? "cpu" : "CPU";
  const auto precisions = backend.precisions(device);
  const auto opened = open_device(device);
  if (!precisions.ok() || !opened.ok())
    return {backend.name(), CheckState::kAbsent,
            (opened.ok() ? precisions.error() : opened.error()).to_string()};
  std::string names;
  for (const Precision p : *precisions) names += (names.empty() ? "" : ", ") + std::string(precision_name(p));
  return {backend.name(), CheckState::kOk, "runs on cores, in " + names};
}

MachineCheck gpu_check() {
  const auto gpus = local_gpus().gpus;
  if (gpus.empty()) return {"GPUs", CheckState::kAbsent, "no backend finds one"};
  return {"GPUs", CheckState::kOk, counted(gpus.size(), "GPU")};
}

// Measured times and the marks of imported models are kept there.
MachineCheck store_check() {
  const std::filesystem::path path = ProfileStore::default_path();
  auto folder = path.parent_path();
  std::error_code error;
  while (!folder.empty() && !std::filesystem::exists(folder, error)) folder = folder.parent_path();
  if (access(folder.c_str(), W_OK) != 0)
    return {"profile store", CheckState::kFails, folder.string() + " cannot be written; give --store FILE"};
  if (!std::filesystem::exists(path, error))
    return {"profile store", CheckState::kOk, path.string() + " will be made by the first measurement"};
  if (access(path.c_str(), R_OK | W_OK) != 0)
    return {"profile store", CheckState::kFails, path.string() + " cannot be written; give --store FILE"};
  return {"profile store", CheckState::kOk, path.string()};
}

// `heddle serve` listens there by default.
MachineCheck port_check(uint16_t port) {
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
  if (free) return {name, CheckState::kOk, "free"};
  return {name, CheckState::kAbsent, "in use; give `heddle serve` another one"};
}

}  // namespace

std::vector<MachineCheck> check_machine() {
  std::vector<MachineCheck> checks = {solver_check("HiGHS", highs_self_test()),
                                      solver_check("CP-SAT", cp_sat_self_test())};
  for (const auto& backend : backend_registry())
    if (backend->computes()) checks.push_back(engine_check(*backend));
  checks.push_back(gpu_check());
  checks.push_back(store_check());
  for (const uint16_t port : {8000, 8001}) checks.push_back(port_check(port));
  return checks;
}

}  // namespace heddle
