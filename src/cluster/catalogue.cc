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

}  // namespace heddle
