#include <vector>

#include "heddle/base/spelling.h"
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

Backend* find_backend(std::string_view name) {
  for (const auto& backend : backend_registry()) {
    if (backend->name() == name) return backend.get();
  }
  return nullptr;
}

Result<std::unique_ptr<RuntimeDevice>> open_device(const Device& device) {
  Backend* backend = find_backend(device.backend);
  if (backend == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : backend_registry()) names.push_back(known->name());
    return Error(Code::kInvalidInput, "device '" + device.name + "' asks for backend '" + device.backend +
                                          "', which this program does not have; it has " + join_names(names) +
                                          did_you_mean(device.backend, names));
  }
  return backend->open(device);
}

}  // namespace heddle
