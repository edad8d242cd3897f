// Requests and answers of the REST protocol: JSON, with tensors in it or, by the binary tensor extension,
// behind it. What is read is untrusted.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/serve/infer_message.h"

namespace heddle {

inline constexpr size_t kMostTensors = 1024;   // of a request
inline constexpr size_t kMostDimensions = 32;  // of a tensor
inline constexpr size_t kLongestName = 4096;   // of a tensor, bytes
inline constexpr size_t kLongestSessionId = 128;
inline constexpr size_t kLongestId = 4096;  // of a request: answers have it, too
inline constexpr const char* kExpectedId = "expected an id of at most 4096 bytes";
// Of the JSON part: read numbers take some twenty times the text; large tensors are for the binary extension.
inline constexpr int64_t kMostJsonBytes = int64_t{16} << 20;

// Clients name a session by a number or a text, which do not mix; 0 and the empty text are none.
inline constexpr const char* kExpectedSessionId =
    "expected a whole number from 0, or a text of at most 128 bytes without control characters";
inline std::string session_id(uint64_t number) { return number == 0 ? "" : std::to_string(number); }
inline std::string session_id(const std::string& text) { return text.empty() ? "" : "'" + text + "'"; }
inline bool is_session_text(const std::string& text) {
  return text.size() <= kLongestSessionId &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

// Reads the body of POST v2/models/NAME/infer. `json_bytes` is the header Inference-Header-Content-Length;
// nullopt: all of the body is JSON. Binary tensors stay where they are in the body, which `owner` keeps
// alive. Every tensor of the result has the bytes that its dtype and shape say. Errors (all invalid input)
// name the place in the JSON. Model and version are the caller's to fill. O(size of the body).
Result<InferRequest> infer_request_from_body(std::string_view body, std::optional<size_t> json_bytes,
                                             const std::shared_ptr<const void>& owner);

struct InferBody {
  std::string bytes;
  std::optional<size_t> json_bytes;  // set when binary tensors follow the JSON
};
// The answer's body; outputs in the order and form that was asked for. Types that JSON cannot hold (FP16,
// BF16) are binary whatever was asked for; infinities and NaN are null in JSON.
InferBody infer_response_body(const InferResponse& response);

}  // namespace heddle
