// What a server offers to a load, by the words of either protocol.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/serve/load.h"

namespace heddle {

struct OfferedInput {
  std::string name, datatype;  // the protocol's names
  std::vector<int64_t> shape;  // -1: open
};
struct OfferedModel {
  std::string name;
  double slo_us = 0, planned_rate_per_s = 0;
  std::vector<OfferedInput> inputs;
};
struct Offer {
  std::vector<std::string> names;    // of all models
  std::vector<OfferedModel> models;  // of those that are wanted
};

inline bool is_wanted(std::span<const std::string> only, const std::string& name) {
  if (only.empty()) return true;
  for (const auto& n : only)
    if (n == name) return true;
  return false;
}

// Errors: no server there, one that speaks something else.
Result<Offer> http_offer(const LoadTarget& target, std::span<const std::string> only);
Result<Offer> grpc_offer(const LoadTarget& target, std::span<const std::string> only);

// The request for gRPC without its id: `bytes` of `tensors` are of each input.
std::string grpc_request(const OfferedModel& model, std::span<const int64_t> bytes,
                         const std::string& tensors);

}  // namespace heddle
