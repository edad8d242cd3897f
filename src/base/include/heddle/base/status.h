// Errors as values. No exception leaves a library folder: adapters convert third-party exceptions to an
// Error. A message says what is wrong, where, what was expected and what to do; each level adds a context.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace heddle {

enum class Code {
  kInvalidInput,        // the user's file, flag or model is wrong: exit status 2
  kNotFound,            // a file, name or key does not exist: exit status 2
  kUnsupported,         // valid, but not something Heddle can do: exit status 2
  kInfeasible,          // no solution exists: exit status 1
  kVerificationFailed,  // a checker or a comparison failed: exit status 1
  kCancelled,           // stopped by the user or a deadline before there was a result
  kIo,                  // reading or writing failed (full disk, permissions): exit status 2
  kInternal,            // a bug in Heddle: exit status 3
};

// "invalid input", "not found", ...
const char* code_name(Code code);

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // Outermost first: {"model.onnx", "node 'conv1'"}.
  const std::vector<std::string>& contexts() const { return contexts_; }

  // Adds an outer context, e.g. the file's name.
  Error&& with_context(std::string context) && {
    contexts_.insert(contexts_.begin(), std::move(context));
    return std::move(*this);
  }
  // "model.onnx: node 'conv1': <message>"
  std::string to_string() const;

 private:
  Code code_;
  std::string message_;
  std::vector<std::string> contexts_;
};

// An error of each code but kVerificationFailed, which few places make.
inline Error invalid_input(std::string message) { return Error(Code::kInvalidInput, std::move(message)); }
inline Error not_found(std::string message) { return Error(Code::kNotFound, std::move(message)); }
inline Error unsupported(std::string message) { return Error(Code::kUnsupported, std::move(message)); }
inline Error infeasible(std::string message) { return Error(Code::kInfeasible, std::move(message)); }
inline Error cancelled_error(std::string message) { return Error(Code::kCancelled, std::move(message)); }
inline Error io_error(std::string message) { return Error(Code::kIo, std::move(message)); }
inline Error internal_error(std::string message) { return Error(Code::kInternal, std::move(message)); }

// Either a T or an Error. value() of an error is a programming mistake and throws std::bad_variant_access.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error: `return {};` is success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return error_.index() == 0; }
  explicit operator bool() const { return ok(); }
  Error& error() & { return std::get<1>(error_); }
  const Error& error() const& { return std::get<1>(error_); }
  Error&& error() && { return std::get<1>(std::move(error_)); }

 private:
  std::variant<std::monostate, Error> error_;
};

}  // namespace heddle

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)

// Returns the error of a Status or Result expression from the enclosing function; does nothing on success.
#define HEDDLE_RETURN_IF_ERROR(expr)                                  \
  do {                                                                \
    auto heddle_status = (expr);                                      \
    if (!heddle_status.ok()) return std::move(heddle_status).error(); \
  } while (0)

// HEDDLE_ASSIGN_OR_RETURN(auto x, make_x());
#define HEDDLE_ASSIGN_OR_RETURN(lhs, expr) \
  HEDDLE_ASSIGN_OR_RETURN_IMPL(HEDDLE_CONCAT(heddle_result_, __LINE__), lhs, expr)
#define HEDDLE_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return std::move(tmp).error();      \
  lhs = std::move(tmp).value()
