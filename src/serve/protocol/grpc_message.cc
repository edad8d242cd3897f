#include "grpc_message.h"

#include <algorithm>
#include <cstring>

#include "heddle/serve/infer_service.h"
#include "infer_json.h"

namespace heddle {
namespace {

// How either protocol says the same.
struct ProtocolStatus {
  Code code;
  int http;
  grpc::StatusCode grpc;
};
constexpr ProtocolStatus kStatuses[] = {
    {Code::kInvalidInput, 400, grpc::StatusCode::INVALID_ARGUMENT},
    {Code::kNotFound, 404, grpc::StatusCode::NOT_FOUND},
    {Code::kUnsupported, 501, grpc::StatusCode::UNIMPLEMENTED},
    {Code::kCancelled, 503, grpc::StatusCode::UNAVAILABLE},
    {Code::kInfeasible, 504, grpc::StatusCode::DEADLINE_EXCEEDED},
    {Code::kInternal, 500, grpc::StatusCode::INTERNAL},  // the last: of all other codes, too
};

template <class Key>
const ProtocolStatus& status_by(Key key, Key ProtocolStatus::*member) {
  const auto* found = std::ranges::find(kStatuses, key, member);
  return found == std::end(kStatuses) ? *std::prev(found) : *found;
}

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

Error bad_tensor(const std::string& tensor, const std::string& message) {
  return invalid_input("input '" + tensor.substr(0, 128) + "': " + message);
}

// The elements of a typed list as T; false where their number or a value does not fit.
template <class T, class List>
bool store_raw(const List& list, size_t count, std::vector<std::byte>& out) {
  if (static_cast<size_t>(list.size()) != count) return false;
  out.resize(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    const auto wide = list.Get(static_cast<int>(i));
    const auto value = static_cast<T>(wide);
    if constexpr (!std::is_floating_point_v<T>) {
      if (static_cast<decltype(wide)>(value) != wide) return false;
    }
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
  return true;
}

bool store_contents(DType dtype, const inference::InferTensorContents& c, size_t count,
                    std::vector<std::byte>& out) {
  switch (dtype) {
    case DType::kBool:
      return store_raw<bool>(c.bool_contents(), count, out);
    case DType::kI8:
      return store_raw<int8_t>(c.int_contents(), count, out);
    case DType::kI16:
      return store_raw<int16_t>(c.int_contents(), count, out);
    case DType::kI32:
      return store_raw<int32_t>(c.int_contents(), count, out);
    case DType::kI64:
      return store_raw<int64_t>(c.int64_contents(), count, out);
    case DType::kU8:
      return store_raw<uint8_t>(c.uint_contents(), count, out);
    case DType::kU16:
      return store_raw<uint16_t>(c.uint_contents(), count, out);
    case DType::kU32:
      return store_raw<uint32_t>(c.uint_contents(), count, out);
    case DType::kU64:
      return store_raw<uint64_t>(c.uint64_contents(), count, out);
    case DType::kF32:
      return store_raw<float>(c.fp32_contents(), count, out);
    case DType::kF64:
      return store_raw<double>(c.fp64_contents(), count, out);
    default:
      return false;  // FP16 and BF16 have no list: raw only
  }
}

Result<InferTensor> read_tensor(const inference::ModelInferRequest::InferInputTensor& from,
                                const std::string* raw) {
  InferTensor t;
  t.name = from.name();
  if (t.name.empty() || t.name.size() > kLongestName)
    return invalid_input("an input has no name, or one that is too long");
  const auto dtype = dtype_from_protocol(from.datatype());
  if (!dtype) return bad_tensor(t.name, "the type '" + from.datatype().substr(0, 64) + "' cannot be served");
  t.dtype = *dtype;
  if (from.shape_size() > static_cast<int>(kMostDimensions))
    return bad_tensor(t.name, "has too many dimensions");
  t.shape.assign(from.shape().begin(), from.shape().end());
  const auto bytes = tensor_bytes(t.dtype, t.shape);
  if (!bytes) return bad_tensor(t.name, "its shape is negative, or larger than any memory");
  t.bytes = *bytes;
  if (from.parameters().contains("shared_memory_region"))
    return bad_tensor(t.name, "shared memory is not supported; send the tensor in the request");
  if (raw != nullptr) {
    if (from.has_contents())
      return bad_tensor(t.name, "has both contents and raw contents; expected one of them");
    if (raw->size() != static_cast<size_t>(t.bytes))
      return bad_tensor(t.name, "has " + std::to_string(raw->size()) + " raw bytes, but " + from.datatype() +
                                    " of shape " + shape_text(t.shape) + " takes " + std::to_string(t.bytes));
    t.data = reinterpret_cast<const std::byte*>(raw->data());
    return t;
  }
  auto values = std::make_shared<std::vector<std::byte>>();
  const auto count = static_cast<size_t>(t.bytes) / static_cast<size_t>(dtype_bits(t.dtype) / 8);
  if (!store_contents(t.dtype, from.contents(), count, *values))
    return bad_tensor(t.name, "its contents are not the " + std::to_string(count) + " elements of type " +
                                  from.datatype() + " that its shape needs");
  t.data = values->data();
  t.owner = std::move(values);
  return t;
}

// Integers of either sign; what is no number, or negative, is an error.
Result<int64_t> read_number(const Parameters& parameters, const char* name) {
  const auto it = parameters.find(name);
  if (it == parameters.end()) return int64_t{0};
  const auto& p = it->second;
  if (p.has_int64_param() && p.int64_param() >= 0) return p.int64_param();
  if (p.has_uint64_param() && p.uint64_param() <= static_cast<uint64_t>(INT64_MAX))
    return static_cast<int64_t>(p.uint64_param());
  return invalid_input(std::string("the parameter '") + name + "' is no number from 0");
}

Result<SessionStep> read_session(const Parameters& parameters) {
  SessionStep session;
  for (const auto& [name, flag] :
       {std::pair("sequence_start", &session.start), std::pair("sequence_end", &session.end)}) {
    const auto it = parameters.find(name);
    if (it == parameters.end()) continue;
    if (!it->second.has_bool_param())
      return invalid_input(std::string("the parameter '") + name + "' is neither true nor false");
    *flag = it->second.bool_param();
  }
  const auto it = parameters.find("sequence_id");
  if (it != parameters.end() && it->second.has_string_param()) {
    if (!is_session_text(it->second.string_param()))
      return invalid_input(std::string("the parameter 'sequence_id': ") + kExpectedSessionId);
    session.id = session_id(it->second.string_param());
  } else if (it != parameters.end() && it->second.has_uint64_param()) {
    session.id = session_id(it->second.uint64_param());
  } else {
    const auto number = read_number(parameters, "sequence_id");
    if (!number.ok()) return invalid_input(std::string("the parameter 'sequence_id': ") + kExpectedSessionId);
    session.id = session_id(static_cast<uint64_t>(*number));
  }
  return session;
}

}  // namespace

int http_status(Code code) { return status_by(code, &ProtocolStatus::code).http; }

int http_status(grpc::StatusCode code) {
  // Of these there are no errors of our own.
  if (code == grpc::StatusCode::OK) return 200;
  if (code == grpc::StatusCode::UNAUTHENTICATED) return 401;
  if (code == grpc::StatusCode::RESOURCE_EXHAUSTED) return 429;
  return status_by(code, &ProtocolStatus::grpc).http;
}

grpc::Status grpc_status(const Error& error) {
  return {status_by(error.code(), &ProtocolStatus::code).grpc, error.to_string()};
}

Result<InferRequest> infer_request_from_proto(const inference::ModelInferRequest& message) {
  InferRequest request;
  request.model = message.model_name();
  request.version = message.model_version();
  if (message.id().size() > kLongestId) return invalid_input(kExpectedId);
  request.id = message.id();
  HEDDLE_ASSIGN_OR_RETURN(request.priority, read_number(message.parameters(), "priority"));
  HEDDLE_ASSIGN_OR_RETURN(request.timeout_us, read_number(message.parameters(), "timeout"));
  if (request.timeout_us > 3'600'000'000)
    return invalid_input("the parameter 'timeout' is more than an hour, in us");
  HEDDLE_ASSIGN_OR_RETURN(request.session, read_session(message.parameters()));
  if (message.inputs_size() > static_cast<int>(kMostTensors) ||
      message.outputs_size() > static_cast<int>(kMostTensors))
    return invalid_input("more than " + std::to_string(kMostTensors) + " inputs or outputs");
  const bool raw = message.raw_input_contents_size() > 0;
  if (raw && message.raw_input_contents_size() != message.inputs_size())
    return invalid_input(std::to_string(message.raw_input_contents_size()) + " raw contents for " +
                         std::to_string(message.inputs_size()) + " inputs");
  for (int i = 0; i < message.inputs_size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(auto tensor,
                            read_tensor(message.inputs(i), raw ? &message.raw_input_contents(i) : nullptr));
    request.inputs.push_back(std::move(tensor));
  }
  for (const auto& o : message.outputs()) {
    if (o.parameters().contains("shared_memory_region") || o.parameters().contains("classification"))
      return invalid_input("output '" + o.name().substr(0, 128) +
                           "': shared memory and classification are not supported");
    request.outputs.push_back({o.name(), true});
  }
  request.binary_outputs = true;
  return request;
}

void infer_response_to_proto(const InferResponse& response, inference::ModelInferResponse& message) {
  message.set_model_name(response.model);
  message.set_model_version(response.version);
  message.set_id(response.id);
  auto& parameters = *message.mutable_parameters();
  parameters["queue_us"].set_double_param(response.timing.queue);
  parameters["compute_us"].set_double_param(response.timing.compute);
  parameters["total_us"].set_double_param(response.timing.total);
  parameters["batch_size"].set_int64_param(response.batch);
  parameters["slo_us"].set_double_param(response.slo_us);
  for (const auto& t : response.outputs) {
    auto& to = *message.add_outputs();
    to.set_name(t.name);
    to.set_datatype(protocol_name(t.dtype));
    for (const auto d : t.shape) to.add_shape(d);
    message.add_raw_output_contents(t.data, static_cast<size_t>(t.bytes));
  }
}

}  // namespace heddle
