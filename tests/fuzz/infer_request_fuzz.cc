// Any bytes as what a client of the server sends: the head of an HTTP request ('h' first), or the body of an
// inference request: all JSON ('j'), with so many JSON bytes as the next two bytes say ('b'), or with JSON to the first
// line feed ('l'). It is refused with a message, or every tensor lies within the body and can be answered with.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "answer.h"
#include "heddle/serve/http_message.h"
#include "json_mutator.h"
#include "protocol/infer_json.h"
#include "require.h"

// Changed JSON has no line feeds.
JsonPlace json_place(std::string_view input) {
  if (input.empty()) return {};
  return {1, input[0] == 'l' ? std::min(input.find('\n'), input.size()) : input.size()};
}

namespace {

void check_head(std::string_view text) {
  const auto end = heddle::head_end(text);
  const auto head = heddle::read_http_head(text.substr(0, end.value_or(text.size())));
  if (!head.ok()) return require(!head.error().message().empty());
  require(!head->method.empty() && !head->path.empty());
  for (const auto& [name, value] : head->headers) {
    require(!name.empty() && head->header(name) != nullptr);
    require(value.find_first_of("\r\n") == std::string::npos);
  }
  require(!(head->chunked && head->content_length));
}

void check_body(std::string_view body, std::optional<size_t> json_bytes) {
  const auto request = heddle::infer_request_from_body(body, json_bytes, nullptr);
  if (!request.ok()) return require(!request.error().message().empty());
  check_body_of(answer_to(*request));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'h') {
    check_head(text);
  } else if (data[0] == 'j') {
    check_body(text, std::nullopt);
  } else if (data[0] == 'l') {
    const auto end = text.find('\n');
    if (end != std::string_view::npos)
      check_body(std::string(text.substr(0, end)).append(text.substr(end + 1)), end);
  } else if (data[0] == 'b' && size >= 3) {
    check_body(text.substr(2), static_cast<size_t>(data[1]) * 256 + data[2]);
  }
  return 0;
}
