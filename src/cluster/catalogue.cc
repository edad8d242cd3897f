#include "heddle/cluster/catalogue.h"

#include <algorithm>

#include "catalogue_table.h"
#include "heddle/cluster/variants.h"

namespace heddle {

std::span<const CatalogueDevice> device_catalogue() { return kCatalogue; }

const CatalogueDevice* find_in_catalogue(std::string_view name) { return catalogue_row(name); }

namespace {

double rate_in(const CatalogueDevice& device, Precision precision) {
  return precision == Precision::kTf32   ? device.tf32_flops
         : precision == Precision::kBf16 ? device.bf16_flops
         : precision == Precision::kFp16 ? device.fp16_flops
                                         : device.f32_flops;
}

}  // namespace

double peak_flops(const CatalogueDevice& device, Precision precision) {
  return std::max(rate_in(device, precision), device.f32_flops);
}

bool computes_in(const CatalogueDevice& device, Precision precision) {
  return rate_in(device, precision) > 0;
}

const CatalogueDevice* rated_by_catalogue(const Device& device) {
  if (!device.target.empty()) return nullptr;
  const CatalogueDevice* row = find_in_catalogue(hardware_name(device.device_class));
  return row != nullptr && device.peak_flops == peak_flops(*row, device.precision) ? row : nullptr;
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
