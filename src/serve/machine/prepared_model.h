// A model of the repository made ready to be planned: loaded at the shape that it is served at, or at each of
// its buckets, checked, and measured on one device of each target.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "local_plan.h"
#include "own_shapes.h"

namespace heddle {

struct PreparedBucket {
  std::shared_ptr<LocalModel> model;
  std::vector<LocalTimes> times;
  std::map<std::string, std::shared_ptr<DeviceRunner>> runners;   // by device and turn, kept between plans
  std::map<std::string, std::shared_ptr<DeviceRunner>> adaptive;  // the same with smaller sets of cores
};

struct PreparedModel {
  std::shared_ptr<ServedModel> served;  // as clients see it
  std::vector<PreparedBucket> buckets;  // one of a model of one shape
  std::optional<OpenModel> open;        // where requests run at their own shapes

  // Compiles a bucket for the device, which is in the model's own type.
  Result<std::shared_ptr<DeviceRunner>> compile(size_t bucket, const Device& device) const;
};

struct PrepareOptions {
  std::vector<Device> targets;  // one device of each target
  double measure_s = .1;        // of each bucket, target and batch size
  Deadline deadline;
  std::function<void(const std::string& what)> report;
  // Chooses the type that the model computes in, from the model at its largest bucket; called first.
  std::function<Status(const LocalModel&)> choose_type;
  std::function<Device(const Device&)> in_type;  // the device in that type
};

Result<PreparedModel> prepare_model(const ModelSource& source, const PrepareOptions& options);

}  // namespace heddle
