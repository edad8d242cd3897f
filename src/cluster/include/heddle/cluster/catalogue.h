// Devices that can be named in a cluster file without having them: rates and sizes from their datasheets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heddle/cluster/cluster.h"

namespace heddle {

// Peak rates without sparsity: of cards at the largest clock that the vendor states, of a CPU socket at its base clock.
// 0: the device does not have it.
struct CatalogueDevice {
  const char* name;  // the class in a cluster file
  DeviceKind kind;
  int64_t memory_bytes;  // 0: it uses its host's
  double memory_bytes_per_s;
  double link_bytes_per_s;  // to its host, each way; 0: a CPU needs none
  double f32_flops;         // without tensor cores
  double tf32_flops, bf16_flops,
      fp16_flops;   // with tensor cores or AMX, sums in float32; else the vector units'
  double int8_ops;  // per second
  const char* source;
};

std::span<const CatalogueDevice> device_catalogue();
const CatalogueDevice* find_in_catalogue(std::string_view name);  // null if there is none
// FLOP per second in the precision; the float32 rate if the device has no faster one.
double peak_flops(const CatalogueDevice& device, Precision precision);
bool computes_in(const CatalogueDevice& device,
                 Precision precision);  // with a rate of its own; in float32 all do
// The catalogue's row that an absent device has its rate from; null if there is none or the device states another rate.
const CatalogueDevice* rated_by_catalogue(const Device& device);
// A device of the class in float32, without engine.
Device make_device(const CatalogueDevice& model, std::string name, HostId host);

}  // namespace heddle
