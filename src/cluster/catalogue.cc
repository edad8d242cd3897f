#include "heddle/cluster/catalogue.h"

#include <algorithm>

#include "catalogue_table.h"

namespace heddle {

std::span<const CatalogueDevice> device_catalogue() { return kCatalogue; }

const CatalogueDevice* find_in_catalogue(std::string_view name) { return catalogue_row(name); }

double peak_flops(const CatalogueDevice& device, Precision precision) {
  const double rate = precision == Precision::kTf32   ? device.tf32_flops
                      : precision == Precision::kBf16 ? device.bf16_flops
                      : precision == Precision::kFp16 ? device.fp16_flops
                                                      : device.f32_flops;
  return std::max(rate, device.f32_flops);
}

Device make_device(const CatalogueDevice& model, std::string name, HostId host) {
  Device d;
  d.name = std::move(name);
  d.kind = model.kind;
  d.device_class = model.name;
  d.host = host;
  d.memory_bytes = model.memory_bytes;
  d.peak_flops = model.f32_flops;
  d.memory_bytes_per_s = model.memory_bytes_per_s;
  d.op_overhead_us = kLaunchUs;
  return d;
}

}  // namespace heddle
