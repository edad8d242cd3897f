#include "onnxruntime_session.h"

#include "heddle/base/errors.h"

namespace heddle::onnxruntime {

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
    if (known != dtype) continue;
    Value* value = nullptr;
    HEDDLE_RETURN_IF_ERROR(checked(*api_,
                                   api_->tensor_on(api_->host_memory, data, static_cast<size_t>(bytes),
                                                   shape.data(), shape.size(), number, &value),
                                   "binding a tensor"));
    list_.push_back(value);
    return {};
  }
  return unsupported(std::string("tensors of ") + dtype_name(dtype) + " cannot be handed to ONNX Runtime");
}

}  // namespace heddle::onnxruntime
