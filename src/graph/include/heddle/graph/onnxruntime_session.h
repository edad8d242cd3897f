// Sessions and tensors of ONNX Runtime, which release themselves.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/onnxruntime_library.h"

namespace heddle::onnxruntime {

using SessionPtr = std::unique_ptr<Session, void (*)(Session*)>;

// A session with the options that `configure` sets. `create` makes it, from a file or from bytes.
Result<SessionPtr> open_session(const Api& api,
                                const std::function<heddle::Status(SessionOptions*)>& configure,
                                const std::function<Status*(SessionOptions*, Session**)>& create);

// The session's threads: the caller's and one fewer than `cores`, bound to all of these. They spin during a run only,
// since between runs the cores may belong to something else. No cores: threads as they come.
heddle::Status use_cores(const Api& api, SessionOptions* options, const std::vector<int>& cores);

// A tensor as the library describes it. `type` is its number of the element type, 0 if it is no tensor.
struct TensorInfo {
  int type = 0;
  Shape shape;           // -1: unknown; empty for a scalar and for an unknown rank
  void* data = nullptr;  // null for a type
};
// The tensor in `value`, whose memory it stays.
Result<TensorInfo> tensor_info(const Api& api, Value* value);
// What the session infers of its output `index`.
Result<TensorInfo> output_info(const Api& api, const Session* session, size_t index);

// Inputs or outputs of a run.
class Values {
 public:
  explicit Values(const Api& api) : api_(&api) {}
  Values(Values&& other) noexcept : api_(other.api_), list_(std::move(other.list_)) { other.list_.clear(); }
  Values& operator=(Values&&) = delete;
  ~Values() { clear(); }

  void clear();
  // `count` places that a run fills with tensors of its own.
  void expect(size_t count);
  // A tensor on the caller's memory, which must outlive it. Unsupported if the library has no such element type.
  heddle::Status add(DType dtype, std::span<const int64_t> shape, void* data, int64_t bytes);
  // The same by the library's number of the element type.
  heddle::Status add_typed(int type, std::span<const int64_t> shape, void* data, int64_t bytes);

  size_t size() const { return list_.size(); }
  const Value* const* inputs() const { return list_.data(); }
  Value** outputs() { return list_.data(); }
  Value* operator[](size_t i) const { return list_[i]; }

 private:
  const Api* api_;
  std::vector<Value*> list_;
};

}  // namespace heddle::onnxruntime
