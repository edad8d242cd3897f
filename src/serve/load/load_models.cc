// What a load asks for: the server's models, and inputs that are made up for them.
#include <algorithm>
#include <cstring>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/random.h"
#include "heddle/serve/infer_message.h"
#include "load_offer.h"

namespace heddle {
namespace {

constexpr double kAskSeconds = 30;

// One row of random values behind `tensors`: floats in [0, 1), others 0 to 3. Its open dimensions become 1,
// and of an input of any size `payload_bytes`. Gives the bytes.
Result<int64_t> make_up(OfferedInput& input, size_t payload_bytes, Random& random, std::string& tensors) {
  const auto bad = [&input](const std::string& what) {
    return invalid_input("input '" + input.name + "' " + what);
  };
  const auto dtype = dtype_from_protocol(input.datatype);
  if (!dtype) return bad("has the type '" + input.datatype + "', of which no values can be made up");
  const bool any = input.shape == std::vector<int64_t>{-1} && *dtype == DType::kU8;
  for (auto& d : input.shape)
    if (d == -1) d = any ? static_cast<int64_t>(payload_bytes) : 1;
  const auto bytes = tensor_bytes(*dtype, input.shape);
  if (!bytes || *bytes > (int64_t{1} << 30)) return bad("is larger than 1 GiB");
  const auto size = static_cast<size_t>(dtype_bits(*dtype) / 8);
  for (int64_t i = 0; i < *bytes; i += static_cast<int64_t>(size)) {
    char element[8] = {};
    if (*dtype == DType::kF32) {
      const auto v = static_cast<float>(random.unit());
      std::memcpy(element, &v, sizeof v);
    } else if (*dtype == DType::kF64) {
      const double v = random.unit();
      std::memcpy(element, &v, sizeof v);
    } else if (*dtype != DType::kF16 && *dtype != DType::kBF16) {
      element[0] = static_cast<char>(random.below(*dtype == DType::kBool ? 2 : 4));
    }
    tensors.append(element, size);
  }
  return *bytes;
}

Result<LoadBody> body_of(const OfferedModel& offered, bool by_grpc, size_t payload_bytes, Random& random) {
  OfferedModel at = offered;
  LoadBody body;
  Json inputs = Json::array();
  std::vector<int64_t> sizes;
  for (auto& input : at.inputs) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t bytes, make_up(input, payload_bytes, random, body.tensors));
    sizes.push_back(bytes);
    inputs.push_back({{"name", input.name},
                      {"datatype", input.datatype},
                      {"shape", input.shape},
                      {"parameters", {{"binary_data_size", bytes}}}});
  }
  body.inputs_json = "\"inputs\":" + inputs.dump() + "}";
  if (by_grpc) body.grpc_message = grpc_request(at, sizes, body.tensors);
  return body;
}

// The model with a request's shapes where its own are open.
Result<OfferedModel> at_shapes(OfferedModel offered, const NamedShapes& shapes) {
  for (auto& input : offered.inputs) {
    const auto it = shapes.find(input.name);
    if (it == shapes.end()) continue;
    const Shape& wanted = it->second;
    const bool fits =
        std::equal(wanted.begin(), wanted.end(), input.shape.begin(), input.shape.end(),
                   [](int64_t size, int64_t offered) { return offered < 0 || offered == size; });
    if (!fits)
      return invalid_input("input '" + input.name + "' is offered in the shape " + shape_text(input.shape) +
                           ", which " + shape_text(wanted) + " is not of");
    input.shape = wanted;
  }
  return offered;
}

Result<ModelUnderLoad> made_up(const OfferedModel& offered, bool by_grpc, const LoadContent& content,
                               Random& random) {
  constexpr size_t kTurns = 4096;
  ModelUnderLoad model;
  model.name = offered.name;
  model.slo_us = offered.slo_us;
  model.planned_rate_per_s = offered.planned_rate_per_s;
  model.keeps_state = offered.keeps_state;
  if (content.shapes.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(auto body, body_of(offered, by_grpc, content.payload_bytes, random));
    model.bodies.push_back(std::move(body));
    return model;
  }
  std::vector<std::string> names;
  for (const auto& input : offered.inputs) names.push_back(input.name);
  HEDDLE_ASSIGN_OR_RETURN(const auto requests, with_names(content.shapes, names));
  double all = 0;
  for (const auto& request : requests) {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, at_shapes(offered, request.shapes));
    HEDDLE_ASSIGN_OR_RETURN(auto body, body_of(at, by_grpc, content.payload_bytes, random));
    model.bodies.push_back(std::move(body));
    all += request.count;
  }
  for (size_t t = 0; t < kTurns; ++t) {
    double left = random.unit() * all;
    uint32_t i = 0;
    while (i + 1 < requests.size() && left >= requests[i].count) left -= requests[i++].count;
    model.turns.push_back(i);
  }
  return model;
}

}  // namespace

Result<Offer> http_offer(const LoadTarget& target, std::span<const std::string> only) {
  HEDDLE_ASSIGN_OR_RETURN(const auto status, ask_json(target, "GET", "/v2/status", "", kAskSeconds));
  const JsonCursor at(status, "/v2/status");
  HEDDLE_ASSIGN_OR_RETURN(const auto list, at.at("models"));
  HEDDLE_ASSIGN_OR_RETURN(const auto offered, list.elements(100000));
  Offer offer;
  for (const auto& m : offered) {
    OfferedModel model;
    HEDDLE_ASSIGN_OR_RETURN(model.name, m.string_or("name", ""));
    offer.names.push_back(model.name);
    if (!is_wanted(only, model.name)) continue;
    HEDDLE_ASSIGN_OR_RETURN(model.slo_us, m.number_or("slo_us", 0, 0, 1e15));
    HEDDLE_ASSIGN_OR_RETURN(model.planned_rate_per_s, m.number_or("rate_per_s", 0, 0, 1e15));
    model.keeps_state = m.has("sessions");
    const auto path = "/v2/models/" + percent_encode(model.name);
    HEDDLE_ASSIGN_OR_RETURN(const auto metadata, ask_json(target, "GET", path, "", kAskSeconds));
    const JsonCursor of_model(metadata, path);
    HEDDLE_ASSIGN_OR_RETURN(const auto inputs_at, of_model.at("inputs"));
    HEDDLE_ASSIGN_OR_RETURN(const auto inputs, inputs_at.elements(1024));
    for (const auto& t : inputs) {
      OfferedInput input;
      HEDDLE_RETURN_IF_ERROR(t.check_keys({"name", "datatype", "shape"}));
      HEDDLE_ASSIGN_OR_RETURN(input.name, t.string_or("name", ""));
      HEDDLE_ASSIGN_OR_RETURN(input.datatype, t.string_or("datatype", ""));
      HEDDLE_ASSIGN_OR_RETURN(const auto shape_at, t.at("shape"));
      HEDDLE_ASSIGN_OR_RETURN(input.shape, shape_at.as_ints(-1, int64_t{1} << 40));
      model.inputs.push_back(std::move(input));
    }
    offer.models.push_back(std::move(model));
  }
  return offer;
}

Result<std::vector<ModelUnderLoad>> load_models(const LoadTarget& target, std::span<const std::string> only,
                                                const LoadContent& content) {
  HEDDLE_ASSIGN_OR_RETURN(auto offer, target.grpc ? grpc_offer(target, only) : http_offer(target, only));
  for (const auto& wanted : only)
    if (std::find(offer.names.begin(), offer.names.end(), wanted) == offer.names.end())
      return not_found("the server has no model '" + wanted + "'" + did_you_mean(wanted, offer.names) +
                       "; it has " + join_names(offer.names, 40));
  if (offer.models.empty()) return invalid_input("the server has no model loaded");
  std::vector<ModelUnderLoad> models;
  Random random = random_stream(content.seed, 0x10ad);
  for (auto& offered : offer.models) {
    auto model = made_up(offered, target.grpc, content, random);
    if (!model.ok()) return std::move(model).error().with_context("model '" + offered.name + "'");
    models.push_back(std::move(*model));
  }
  return models;
}

}  // namespace heddle
