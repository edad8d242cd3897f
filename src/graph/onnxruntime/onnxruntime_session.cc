#include "heddle/graph/onnxruntime_session.h"

namespace heddle::onnxruntime {
namespace {

// Empty if one thread does all the work.
std::string thread_affinities(const std::vector<int>& cores) {
  std::string entry, list;
  // The library counts processors from 1.
  for (const int core : cores) entry += (entry.empty() ? "" : ",") + std::to_string(core + 1);
  for (size_t thread = 1; thread < cores.size(); ++thread) list += (list.empty() ? "" : ";") + entry;
  return list;
}

heddle::Status read_info(const Api& api, const ShapeInfo* info, TensorInfo& tensor) {
  size_t rank = 0;
  HEDDLE_RETURN_IF_ERROR(checked(api, api.element_type(info, &tensor.type), "reading a type"));
  HEDDLE_RETURN_IF_ERROR(checked(api, api.rank(info, &rank), "reading a shape"));
  tensor.shape.assign(rank, 0);
  return checked(api, api.shape(info, tensor.shape.data(), rank), "reading a shape");
}

}  // namespace

heddle::Status use_cores(const Api& api, SessionOptions* options, const std::vector<int>& cores) {
  HEDDLE_RETURN_IF_ERROR(checked(api, api.set_inter_op_threads(options, 1), "setting threads"));
  if (cores.empty()) return {};
  const int threads = static_cast<int>(cores.size());
  HEDDLE_RETURN_IF_ERROR(checked(api, api.set_intra_op_threads(options, threads), "setting threads"));
  if (threads == 1) return {};
  HEDDLE_RETURN_IF_ERROR(
      checked(api, api.set_entry(options, "session.force_spinning_stop", "1"), "setting threads"));
  return checked(
      api, api.set_entry(options, "session.intra_op_thread_affinities", thread_affinities(cores).c_str()),
      "setting threads");
}

Result<TensorInfo> tensor_info(const Api& api, Value* value) {
  int is_tensor = 0;
  HEDDLE_RETURN_IF_ERROR(checked(api, api.is_tensor(value, &is_tensor), "reading an output"));
  TensorInfo tensor;
  if (is_tensor == 0) return tensor;
  ShapeInfo* info = nullptr;
  HEDDLE_RETURN_IF_ERROR(checked(api, api.shape_info(value, &info), "reading an output"));
  const heddle::Status read = read_info(api, info, tensor);
  api.release_shape_info(info);
  HEDDLE_RETURN_IF_ERROR(read);
  HEDDLE_RETURN_IF_ERROR(checked(api, api.data(value, &tensor.data), "reading an output"));
  return tensor;
}

Result<TensorInfo> output_info(const Api& api, const Session* session, size_t index) {
  TypeInfo* type = nullptr;
  HEDDLE_RETURN_IF_ERROR(checked(api, api.output_type(session, index, &type), "reading a type"));
  const std::unique_ptr<TypeInfo, void (*)(TypeInfo*)> owned(type, api.release_type);
  const ShapeInfo* info = nullptr;
  HEDDLE_RETURN_IF_ERROR(checked(api, api.tensor_type(type, &info), "reading a type"));
  TensorInfo tensor;
  if (info != nullptr) HEDDLE_RETURN_IF_ERROR(read_info(api, info, tensor));
  return tensor;
}

Result<SessionPtr> open_session(const Api& api,
                                const std::function<heddle::Status(SessionOptions*)>& configure,
                                const std::function<Status*(SessionOptions*, Session**)>& create) {
  SessionOptions* made = nullptr;
  HEDDLE_RETURN_IF_ERROR(checked(api, api.create_session_options(&made), "making options"));
  const std::unique_ptr<SessionOptions, void (*)(SessionOptions*)> options(made, api.release_session_options);
  HEDDLE_RETURN_IF_ERROR(configure(options.get()));
  Session* session = nullptr;
  HEDDLE_RETURN_IF_ERROR(checked(api, create(options.get(), &session), "loading"));
  return SessionPtr(session, api.release_session);
}

void Values::clear() {
  for (auto* value : list_)
    if (value != nullptr) api_->release_value(value);
  list_.clear();
}

void Values::expect(size_t count) {
  clear();
  list_.assign(count, nullptr);
}

heddle::Status Values::add(DType dtype, std::span<const int64_t> shape, void* data, int64_t bytes) {
  for (const auto& [known, number] : kElementTypes) {
    if (known == dtype) return add_typed(number, shape, data, bytes);
  }
  return unsupported(std::string("tensors of ") + dtype_name(dtype) + " cannot be handed to ONNX Runtime");
}

heddle::Status Values::add_typed(int type, std::span<const int64_t> shape, void* data, int64_t bytes) {
  Value* value = nullptr;
  HEDDLE_RETURN_IF_ERROR(checked(*api_,
                                 api_->tensor_on(api_->host_memory, data, static_cast<size_t>(bytes),
                                                 shape.data(), shape.size(), type, &value),
                                 "binding a tensor"));
  list_.push_back(value);
  return {};
}

}  // namespace heddle::onnxruntime
