#include "heddle/base/status.h"

namespace heddle {

const char* code_name(Code code) {
  switch (code) {
    case Code::kInvalidInput:
      return "invalid input";
    case Code::kNotFound:
      return "not found";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kInfeasible:
      return "infeasible";
    case Code::kVerificationFailed:
      return "verification failed";
    case Code::kCancelled:
      return "cancelled";
    case Code::kIo:
      return "input/output error";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text;
  for (const auto& context : contexts_) text += context + ": ";
  return text + message_;
}

}  // namespace heddle
