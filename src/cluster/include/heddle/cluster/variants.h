// Variants: one physical device with several engines and precisions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

struct Variant {
  std::string backend;
  Precision precision = Precision::kF32;
  bool operator==(const Variant&) const = default;
};

Variant variant_of(const Device& device);
// "onnxruntime bf16"; without the precision if it is float32.
std::string variant_text(const Variant& variant);

// The same physical device with another engine and precision, which are part of its profile target. A rate that came
// from the catalogue becomes that of the precision.
Device as_variant(Device device, const Variant& variant);
// The same as a device beside `device`: named "cpu0+onnxruntime" or "cpu0+bf16", and with a class of its own.
Device variant_beside(const Device& device, const Variant& variant);

// [device] its variants: the first one replaces its engine and precision, the others become devices at the
// cluster's end. Names say what differs from the device as it was. An empty list leaves the device as it is. Ids
// and links stay the same.
Result<std::shared_ptr<const Cluster>> with_variants(const Cluster& cluster,
                                                     const std::vector<std::vector<Variant>>& by_device);

// "cpu0" for "cpu0+onnxruntime+bf16": a name without engine and precision.
std::string hardware_name(const std::string& name);
// Of "cpu0+bf16"; float32 if the name has none.
Precision precision_in_name(const std::string& name);
// The device of that name; or, for "cpu0+bf16", what the device "cpu0" would be with that engine and precision.
// nullopt if there is neither.
std::optional<Device> device_or_variant(const Cluster& cluster, const std::string& name);

}  // namespace heddle
