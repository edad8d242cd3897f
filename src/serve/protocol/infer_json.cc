#include "infer_json.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "heddle/base/json.h"

namespace heddle {
namespace {

// Elements of a (nested) JSON array in row-major order; nesting is not compared with the shape, as the
// protocol allows both flat and nested arrays.
Status flatten(const JsonCursor& at, std::vector<const Json*>& out, size_t most) {
  std::vector<std::pair<const Json*, size_t>> open = {{&at.value(), 0}};
  while (!open.empty()) {
    auto& [array, next] = open.back();
    if (next == array->size()) {
      open.pop_back();
      continue;
    }
    const Json& element = (*array)[next++];
    if (element.is_array()) {
      open.emplace_back(&element, 0);
      continue;
    }
    if (out.size() == most)
      return at.error("has more than the " + std::to_string(most) + " elements of its shape");
    out.push_back(&element);
  }
  return {};
}

template <class T>
bool store(const Json& element, std::byte* to) {
  T value{};
  if constexpr (std::is_same_v<T, bool>) {
    if (element.is_boolean()) {
      value = element.get<bool>();
    } else if (element.is_number_integer() && (element == 0 || element == 1)) {
      value = element == 1;
    } else {
      return false;
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!element.is_number()) return false;
    const double wide = element.get<double>();
    if (std::abs(wide) > static_cast<double>(std::numeric_limits<T>::max())) return false;
    value = static_cast<T>(wide);
  } else if (element.is_number_unsigned()) {
    const auto wide = element.get<uint64_t>();
    if (wide > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
    value = static_cast<T>(wide);
  } else if (element.is_number_integer()) {
    const auto wide = element.get<int64_t>();
    if (std::is_unsigned_v<T> || wide < static_cast<int64_t>(std::numeric_limits<T>::min())) return false;
    value = static_cast<T>(wide);
  } else {
    return false;
  }
  std::memcpy(to, &value, sizeof value);
  return true;
}

template <class T>
Json load(const std::byte* from, int64_t count) {
  Json out = Json::array();
  out.get_ref<Json::array_t&>().reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, bool>) {  // any byte but 0 is true
      out.push_back(from[i] != std::byte{0});
      continue;
    }
    T value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      out.push_back(std::isfinite(value) ? Json(value) : Json());
    } else {
      out.push_back(value);
    }
  }
  return out;
}

// A type that JSON has a form for: how an element is read, and how a tensor's bytes are written.
struct JsonElements {
  DType dtype;
  bool (*store)(const Json& element, std::byte* to);
  Json (*load)(const std::byte* from, int64_t count);
};
constexpr JsonElements kJsonElements[] = {
    {DType::kBool, store<bool>, load<bool>},        {DType::kU8, store<uint8_t>, load<uint8_t>},
    {DType::kU16, store<uint16_t>, load<uint16_t>}, {DType::kU32, store<uint32_t>, load<uint32_t>},
    {DType::kU64, store<uint64_t>, load<uint64_t>}, {DType::kI8, store<int8_t>, load<int8_t>},
    {DType::kI16, store<int16_t>, load<int16_t>},   {DType::kI32, store<int32_t>, load<int32_t>},
    {DType::kI64, store<int64_t>, load<int64_t>},   {DType::kF32, store<float>, load<float>},
    {DType::kF64, store<double>, load<double>},
};

// Null where JSON has no form for the type.
const JsonElements* json_elements(DType dtype) {
  const auto* found = std::ranges::find(kJsonElements, dtype, &JsonElements::dtype);
  return found == std::end(kJsonElements) ? nullptr : found;
}

// Parameters are open: those that nobody here knows are left alone, except what would change the answer.
Status refuse_shared_memory(const JsonCursor& parameters) {
  if (parameters.has("shared_memory_region"))
    return parameters.error("shared memory is not supported; send the tensor in the request");
  return {};
}

class Reader {
 public:
  Reader(std::string_view binary, const std::shared_ptr<const void>& owner)
      : binary_(binary), owner_(owner) {}

  Result<InferTensor> tensor(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "shape", "datatype", "parameters", "data"}));
    InferTensor t;
    HEDDLE_ASSIGN_OR_RETURN(const auto name, at.at("name"));
    HEDDLE_ASSIGN_OR_RETURN(t.name, name.as_string());
    if (t.name.empty() || t.name.size() > kLongestName)
      return name.error("expected a name of 1 to " + std::to_string(kLongestName) + " bytes");
    HEDDLE_ASSIGN_OR_RETURN(const auto datatype, at.at("datatype"));
    HEDDLE_ASSIGN_OR_RETURN(const auto type, datatype.as_string());
    const auto dtype = dtype_from_protocol(type);
    if (!dtype)
      return datatype.error("the type '" + type.substr(0, 64) +
                            "' cannot be served; expected BOOL, UINT8 to UINT64, INT8 to INT64, FP16, BF16, "
                            "FP32 or FP64");
    t.dtype = *dtype;
    HEDDLE_ASSIGN_OR_RETURN(const auto shape, at.at("shape"));
    HEDDLE_ASSIGN_OR_RETURN(t.shape, shape.as_ints(0, int64_t{1} << 40));
    if (t.shape.size() > kMostDimensions)
      return shape.error("has more than " + std::to_string(kMostDimensions) + " dimensions");
    const auto bytes = tensor_bytes(t.dtype, t.shape);
    if (!bytes) return shape.error("is larger than any memory");
    t.bytes = *bytes;
    std::optional<int64_t> binary_size;
    if (at.has("parameters")) {
      HEDDLE_ASSIGN_OR_RETURN(const auto parameters, at.at("parameters"));
      HEDDLE_RETURN_IF_ERROR(refuse_shared_memory(parameters));
      if (parameters.has("binary_data_size")) {
        HEDDLE_ASSIGN_OR_RETURN(binary_size, parameters.int_or("binary_data_size", 0, 0));
      }
    }
    if (binary_size && at.has("data"))
      return at.error("has both 'data' and 'binary_data_size'; expected one of them");
    HEDDLE_RETURN_IF_ERROR(binary_size ? take_binary(at, *binary_size, t) : take_json(at, t));
    return t;
  }

  size_t left() const { return binary_.size(); }

 private:
  Status take_binary(const JsonCursor& at, int64_t size, InferTensor& t) {
    if (size != t.bytes)
      return at.error("'binary_data_size' is " + std::to_string(size) + ", but " + protocol_name(t.dtype) +
                      " of shape " + shape_text(t.shape) + " takes " + std::to_string(t.bytes) + " bytes");
    if (static_cast<uint64_t>(size) > binary_.size())
      return at.error("needs " + std::to_string(size) + " binary bytes, but only " +
                      std::to_string(binary_.size()) + " are left behind the JSON");
    t.data = reinterpret_cast<const std::byte*>(binary_.data());
    t.owner = owner_;
    binary_.remove_prefix(static_cast<size_t>(size));
    return {};
  }

  static Status take_json(const JsonCursor& at, InferTensor& t) {
    const auto* elements_of = json_elements(t.dtype);
    if (elements_of == nullptr)
      return at.error(std::string(protocol_name(t.dtype)) +
                      " has no form in JSON; send it by the binary tensor extension");
    HEDDLE_ASSIGN_OR_RETURN(const auto data, at.at("data"));
    if (!data.value().is_array()) return data.error("expected an array of numbers");
    const auto size = static_cast<size_t>(dtype_bits(t.dtype) / 8);
    const size_t count = static_cast<size_t>(t.bytes) / size;
    std::vector<const Json*> elements;
    HEDDLE_RETURN_IF_ERROR(flatten(data, elements, count));
    if (elements.size() != count)
      return data.error("has " + std::to_string(elements.size()) + " elements, but the shape " +
                        shape_text(t.shape) + " needs " + std::to_string(count));
    auto bytes = std::make_shared<std::vector<std::byte>>(count * size);
    for (size_t i = 0; i < count; ++i)
      if (!elements_of->store(*elements[i], bytes->data() + i * size))
        return data.error("element " + std::to_string(i) + " is no " + protocol_name(t.dtype));
    t.data = bytes->data();
    t.owner = std::move(bytes);
    return {};
  }

  std::string_view binary_;
  const std::shared_ptr<const void>& owner_;
};

Status read_session(const JsonCursor& at, SessionStep& session) {
  HEDDLE_ASSIGN_OR_RETURN(session.start, at.bool_or("sequence_start", false));
  HEDDLE_ASSIGN_OR_RETURN(session.end, at.bool_or("sequence_end", false));
  if (!at.has("sequence_id")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto id, at.at("sequence_id"));
  if (id.value().is_number_unsigned())
    session.id = session_id(id.value().get<uint64_t>());
  else if (id.value().is_string() && is_session_text(id.value().get_ref<const std::string&>()))
    session.id = session_id(id.value().get_ref<const std::string&>());
  else
    return id.error(kExpectedSessionId);
  return {};
}

Status read_parameters(const JsonCursor& at, InferRequest& request) {
  if (!at.value().is_object()) return at.error("expected an object");
  // The names that Triton's clients use.
  HEDDLE_ASSIGN_OR_RETURN(request.priority, at.int_or("priority", 0, 0));
  HEDDLE_ASSIGN_OR_RETURN(request.timeout_us, at.int_or("timeout", 0, 0, int64_t{3'600'000'000}));
  HEDDLE_ASSIGN_OR_RETURN(request.binary_outputs, at.bool_or("binary_data_output", false));
  return read_session(at, request.session);
}

Result<RequestedOutput> read_output(const JsonCursor& at, bool binary_default) {
  HEDDLE_RETURN_IF_ERROR(at.check_keys({"name", "parameters"}));
  RequestedOutput output;
  HEDDLE_ASSIGN_OR_RETURN(const auto name, at.at("name"));
  HEDDLE_ASSIGN_OR_RETURN(output.name, name.as_string());
  output.binary = binary_default;
  if (!at.has("parameters")) return output;
  HEDDLE_ASSIGN_OR_RETURN(const auto parameters, at.at("parameters"));
  if (!parameters.value().is_object()) return parameters.error("expected an object");
  HEDDLE_RETURN_IF_ERROR(refuse_shared_memory(parameters));
  HEDDLE_ASSIGN_OR_RETURN(output.binary, parameters.bool_or("binary_data", binary_default));
  HEDDLE_ASSIGN_OR_RETURN(const auto classes, parameters.int_or("classification", 0));
  if (classes != 0) return parameters.error("'classification' is not supported; ask for the tensor");
  return output;
}

}  // namespace

Result<InferRequest> infer_request_from_body(std::string_view body, std::optional<size_t> json_bytes,
                                             const std::shared_ptr<const void>& owner) {
  if (json_bytes && *json_bytes > body.size())
    return invalid_input("Inference-Header-Content-Length is " + std::to_string(*json_bytes) +
                         ", but the body has " + std::to_string(body.size()) + " bytes");
  const size_t head = json_bytes.value_or(body.size());
  HEDDLE_ASSIGN_OR_RETURN(const Json json, parse_json(body.substr(0, head), {32, kMostJsonBytes}));
  const JsonCursor at(json);
  HEDDLE_RETURN_IF_ERROR(
      at.check_keys({"model_name", "model_version", "id", "parameters", "inputs", "outputs"}));
  InferRequest request;
  HEDDLE_ASSIGN_OR_RETURN(request.id, at.string_or("id", ""));
  if (request.id.size() > kLongestId) return at.error(kExpectedId);
  if (at.has("parameters")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto parameters, at.at("parameters"));
    HEDDLE_RETURN_IF_ERROR(read_parameters(parameters, request));
  }
  Reader reader(body.substr(head), owner);
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, at.at("inputs"));
  HEDDLE_ASSIGN_OR_RETURN(const auto tensors, inputs.elements(kMostTensors));
  for (const auto& t : tensors) {
    HEDDLE_ASSIGN_OR_RETURN(auto tensor, reader.tensor(t));
    request.inputs.push_back(std::move(tensor));
  }
  if (reader.left() > 0)
    return invalid_input(std::to_string(reader.left()) + " bytes are left behind the last binary tensor");
  if (at.has("outputs")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, at.at("outputs"));
    HEDDLE_ASSIGN_OR_RETURN(const auto wanted, outputs.elements(kMostTensors));
    for (const auto& w : wanted) {
      HEDDLE_ASSIGN_OR_RETURN(auto output, read_output(w, request.binary_outputs));
      request.outputs.push_back(std::move(output));
    }
  }
  return request;
}

InferBody infer_response_body(const InferResponse& r) {
  Json json = {{"model_name", r.model}, {"model_version", r.version}};
  if (!r.id.empty()) json["id"] = r.id;
  json["parameters"] = {{"queue_us", r.timing.queue},
                        {"compute_us", r.timing.compute},
                        {"total_us", r.timing.total},
                        {"batch_size", r.batch},
                        {"slo_us", r.slo_us}};
  Json outputs = Json::array();
  std::vector<const InferTensor*> behind;
  for (size_t i = 0; i < r.outputs.size(); ++i) {
    const auto& t = r.outputs[i];
    Json output = {{"name", t.name}, {"datatype", protocol_name(t.dtype)}, {"shape", t.shape}};
    const bool binary = r.requested.empty() ? r.binary_default : r.requested[i].binary;
    const auto* elements = binary ? nullptr : json_elements(t.dtype);
    if (elements != nullptr) {
      output["data"] = elements->load(t.data, t.bytes * 8 / dtype_bits(t.dtype));
    } else {
      output["parameters"] = {{"binary_data_size", t.bytes}};
      behind.push_back(&t);
    }
    outputs.push_back(std::move(output));
  }
  json["outputs"] = std::move(outputs);
  InferBody body;
  body.bytes = json_text(json);
  if (behind.empty()) return body;
  body.json_bytes = body.bytes.size();
  size_t total = body.bytes.size();
  for (const auto* t : behind) total += static_cast<size_t>(t->bytes);
  body.bytes.reserve(total);
  for (const auto* t : behind)
    body.bytes.append(reinterpret_cast<const char*>(t->data), static_cast<size_t>(t->bytes));
  return body;
}

}  // namespace heddle
