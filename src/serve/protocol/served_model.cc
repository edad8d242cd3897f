#include "heddle/serve/served_model.h"

namespace heddle {

std::shared_ptr<ServedModel> timed_model(const std::string& name, double slo_us, bool workers) {
  auto served = std::make_shared<ServedModel>();
  served->name = name;
  served->version = "1";
  served->platform = "heddle_timed";
  served->inputs = {{kPayloadInput, DType::kU8, {-1}, 0}};
  served->outputs = {{kBatchOutput, DType::kI64, {1}, sizeof(int64_t)}};
  if (workers) served->outputs.push_back({kDigestOutput, DType::kU64, {1}, sizeof(uint64_t)});
  served->any_payload = true;
  served->slo_us = slo_us;
  served->note = "emulated devices: nothing is computed";
  return served;
}

}  // namespace heddle
