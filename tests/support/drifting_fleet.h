// Fleets whose devices may take other times than their plans believe.
#pragma once

#include "heddle/fleet/fleet.h"
#include "heddle/serve/infer_service.h"

namespace heddle {

// One block that takes `planned_us` by plan on each of two classes.
inline Fleet two_alike(int64_t sound, int64_t drifting, double slo_us, double planned_us = 10e3) {
  Fleet fleet;
  fleet.name = "alike";
  fleet.classes = {{.name = "sound", .count = sound, .nic_bytes_per_s = 1e9},
                   {.name = "drifting", .count = drifting, .nic_bytes_per_s = 1e9}};
  FleetModel net;
  net.name = "net";
  net.blocks = 1;
  net.cut_bytes = {1000, 1000};
  net.slo_us = slo_us;
  net.latency_us = {{{{planned_us}}}, {{{planned_us}}}};
  fleet.models = {net};
  return fleet;
}

// A request of that model without a payload, whatever becomes of it.
inline void send_and_forget(InferService& service) {
  InferRequest request;
  request.model = "net";
  InferTensor payload;
  payload.name = kPayloadInput;
  payload.dtype = DType::kU8;
  payload.shape = {0};
  request.inputs.push_back(payload);
  service.infer(std::move(request), [](const Result<InferResponse>&) {});
}

}  // namespace heddle
