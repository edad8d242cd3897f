#include <vector>

#include "heddle/base/spelling.h"
#include "heddle/cluster/discover.h"
#include "heddle/runtime/backend.h"

namespace heddle {

#define HEDDLE_BACKEND(name) std::unique_ptr<Backend> make_##name##_backend();
#include "heddle_backends.inc"
#undef HEDDLE_BACKEND

std::span<const std::unique_ptr<Backend>> backend_registry() {
  static const std::vector<std::unique_ptr<Backend>>* const list = [] {
    auto* backends =
        new std::vector<std::unique_ptr<Backend>>();  // never destroyed: devices may outlive statics
#define HEDDLE_BACKEND(name) backends->push_back(make_##name##_backend());
#include "heddle_backends.inc"
#undef HEDDLE_BACKEND
    return backends;
  }();
  return *list;
}

GpuTopology local_gpus() {
  for (const auto& backend : backend_registry()) {
    GpuTopology gpus = backend->gpus();
    if (!gpus.gpus.empty()) return gpus;
  }
  return {};
}

std::string measuring_fingerprint() {
  std::string text = machine_fingerprint();
  for (const auto& backend : backend_registry())
    if (const auto release = backend->release(); !release.empty())
      text += " | " + backend->name() + " " + release;
  return text;
}

Backend* find_backend(std::string_view name) {
  for (const auto& backend : backend_registry()) {
    if (backend->name() == name) return backend.get();
  }
  return nullptr;
}

namespace {

Result<Backend*> backend_of(const Device& device) {
  if (Backend* backend = find_backend(device.backend)) return backend;
  std::vector<std::string> names;
  for (const auto& known : backend_registry()) names.push_back(known->name());
  return invalid_input("device '" + device.name + "' asks for backend '" + device.backend +
                       "', which this program does not have; it has " + join_names(names) +
                       did_you_mean(device.backend, names));
}

}  // namespace

Status RuntimeDevice::read_in_place(DeviceStream&, std::byte*, const std::byte*, int64_t) {
  return unsupported("this device's kernels do not read host memory");
}

Status check_precision(const Device& device) {
  if (device.precision == Precision::kF32) return {};  // every backend has it
  HEDDLE_ASSIGN_OR_RETURN(const Backend* backend, backend_of(device));
  HEDDLE_ASSIGN_OR_RETURN(const auto list, backend->precisions(device));
  std::vector<std::string> names;
  for (const Precision precision : list) {
    if (precision == device.precision) return {};
    names.push_back(precision_name(precision));
  }
  return invalid_input("device '" + device.name + "' is to compute in " + precision_name(device.precision) +
                       ", which " + backend->name() + " does not have in hardware here; it has " +
                       join_names(names) + "; plan again for this machine");
}

Result<std::unique_ptr<RuntimeDevice>> open_device(const Device& device) {
  HEDDLE_ASSIGN_OR_RETURN(Backend* const backend, backend_of(device));
  HEDDLE_RETURN_IF_ERROR(check_precision(device));
  return backend->open(device);
}

}  // namespace heddle
