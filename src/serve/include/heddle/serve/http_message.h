// HTTP/1.1 messages (RFC 9112): the head of a request, read strictly, and answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"

namespace heddle {

inline constexpr size_t kMostHeadBytes = 16384;  // of a request's or answer's first line and headers together

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;  // names in lower case

struct HttpHead {
  std::string method;  // as sent; at most 32 bytes
  std::string path;    // before '?', percent-decoded
  std::vector<std::string>
      parts;          // of the path, between its slashes, none empty: an encoded slash is in a part
  std::string query;  // behind '?', as sent
  HttpHeaders headers;
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;  // any Transfer-Encoding
  std::optional<uint64_t> content_length;

  // The first header of that name (lower case); nullptr: there is none.
  const std::string* header(std::string_view name) const;
};

// Where the head at the start of `text` ends (behind its empty line); nullopt: not yet there.
std::optional<size_t> head_end(std::string_view text);
// Reads a whole head. Refused: control characters, a malformed first line, percent codes or header, two
// lengths that differ, a length beside an encoding (request smuggling), versions other than 1.0 and 1.1.
Result<HttpHead> read_http_head(std::string_view text);

// An answer's head, as a client sees it.
struct HttpAnswerHead {
  int status = 0;
  HttpHeaders headers;
  std::optional<uint64_t> content_length;  // nullopt and not chunked: the body ends with the connection
  bool chunked = false;                    // any Transfer-Encoding
  bool keep_alive = true;
};
Result<HttpAnswerHead> read_http_answer_head(std::string_view text);
// The body of an answer in chunks; nullopt: `text` is not all of it, or is none.
std::optional<std::string> read_chunks(std::string_view text);

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;  // further ones
  std::string body;
};
// Text that is not UTF-8 is replaced: names come from files and from the network.
HttpResponse json_response(const Json& json, int status = 200);
// {"error": message} as the protocol wants it.
HttpResponse http_error(int status, std::string_view message);
// The bytes to send before the body.
std::string http_response_head(const HttpResponse& response, bool keep_alive);

std::string lower_case(std::string_view text);  // of ASCII's letters
// Digits and nothing else; nullopt: something else, or too many of them.
std::optional<uint64_t> parse_digits(std::string_view text);
// With codes "%XX" for all but letters, digits and "-._~": as a part of a path.
std::string percent_encode(std::string_view text);
// The character of the code "%XX" at `at`; nullopt: none begins there.
std::optional<char> percent_code(std::string_view text, size_t at);

// Are they equal? Takes as long whatever of them is.
bool same_secret(std::string_view given, std::string_view wanted);

}  // namespace heddle
