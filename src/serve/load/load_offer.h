// What a server offers to a load, by the words of either protocol.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/serve/load.h"

namespace heddle {

struct OfferedInput {
  std::string name, datatype;  // the protocol's names
  std::vector<int64_t> shape;  // -1: open
};
struct OfferedModel {
  std::string name;
  double slo_us = 0, planned_rate_per_s = 0;
  bool keeps_state = false;
  std::vector<OfferedInput> inputs;
};
struct Offer {
  std::vector<std::string> names;    // of all models
  std::vector<OfferedModel> models;  // of those that are wanted
};

inline bool is_wanted(std::span<const std::string> only, const std::string& name) {
  return only.empty() || std::ranges::find(only, name) != only.end();
}

// Errors: no server there, one that speaks something else.
Result<Offer> http_offer(const LoadTarget& target, std::span<const std::string> only);
Result<Offer> grpc_offer(const LoadTarget& target, std::span<const std::string> only);

// Each number is a connection of its own. Nothing is sent twice, and no proxy of the environment is between.
std::shared_ptr<grpc::Channel> load_channel(const LoadTarget& target, int number);
// Shows the target's token.
void authorize(const LoadTarget& target, grpc::ClientContext& context);

// The request for gRPC without its id and parameters: `bytes` of `tensors` are of each input.
std::string grpc_request(const OfferedModel& model, std::span<const int64_t> bytes,
                         const std::string& tensors);

}  // namespace heddle
