#include "heddle/base/json.h"
#include "heddle/fleet/fleet.h"
#include "heddle/serve/worker.h"
#include "protocol/grpc_address.h"

namespace heddle {

std::string worker_entry_text(const WorkerEntry& entry) {
  Json devices = Json::object();
  for (const auto& [name, count] : entry.devices) devices[name] = count;
  return Json{{"address", entry.address},
              {"incarnation", entry.incarnation},
              {"pid", entry.pid},
              {"devices", std::move(devices)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<WorkerEntry> worker_entry_from_text(const std::string& name, const std::string& text) {
  const auto context = "worker '" + name + "'";
  auto json = parse_json(text, {8, 1 << 20});
  if (!json.ok()) return std::move(json).error().with_context(context);
  const JsonCursor at(*json, context);
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"address", "incarnation", "pid", "devices"}));
  WorkerEntry entry;
  entry.name = name;
  HEDDLE_ASSIGN_OR_RETURN(entry.address, at.string_or("address", ""));
  HEDDLE_RETURN_IF_ERROR(check_grpc_address(entry.address));
  HEDDLE_ASSIGN_OR_RETURN(entry.incarnation, at.string_or("incarnation", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.pid, at.int_or("pid", 0, 0, INT32_MAX));
  HEDDLE_ASSIGN_OR_RETURN(const auto devices, at.at("devices"));
  if (!devices.value().is_object() || devices.value().size() > static_cast<size_t>(kMaxFleetClasses))
    return devices.error("expected an object of numbers of devices by class");
  for (const auto& [c, number] : devices.value().items()) {
    HEDDLE_ASSIGN_OR_RETURN(entry.devices[c],
                            JsonCursor(number, devices.path() + "." + c).as_int(0, kMaxFleetDevices));
  }
  return entry;
}

}  // namespace heddle
