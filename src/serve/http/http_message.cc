#include "heddle/serve/http_message.h"

#include <algorithm>
#include <charconv>

#include "heddle/base/json.h"
#include "heddle/base/numbers.h"

namespace heddle {
namespace {

struct Reason {
  int status;
  const char* text;
};
constexpr Reason kReasons[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
};

bool is_token(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto decoded = percent_code(text, i);
    if (text[i] == '%' && decoded.value_or('\0') == '\0')
      return invalid_input("a malformed percent code in the path");
    out += decoded.value_or(text[i]);
    i += decoded ? 2 : 0;
  }
  return out;
}

// The line up to CRLF (a lone LF is accepted), taken off the text.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

Status read_headers(std::string_view text, HttpHeaders& headers) {
  for (;;) {
    const auto line = take_line(text);
    if (line.empty()) return {};
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return invalid_input("a header line without a name");
    for (const char c : line.substr(0, colon))
      if (!is_token(c)) return invalid_input("a header's name has a character that is not allowed");
    for (const char c : line.substr(colon + 1))
      if ((static_cast<unsigned char>(c) < 32 && c != '\t') || c == 127)
        return invalid_input("a header's value has a control character");
    headers.emplace_back(lower_case(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
}

Status read_length(const HttpHeaders& headers, std::optional<uint64_t>& length) {
  for (const auto& [name, value] : headers) {
    if (name != "content-length") continue;
    const auto n = parse_digits(value);
    if (!n) return invalid_input("Content-Length is no number of bytes");
    if (length && *length != *n) return invalid_input("two Content-Length headers that differ");
    length = n;
  }
  return {};
}

// The first header of that name (lower case); nullptr: there is none.
const std::string* find_header(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find(headers, name, &HttpHeaders::value_type::first);
  return found == headers.end() ? nullptr : &found->second;
}

bool keeps_alive(const HttpHeaders& headers, bool by_default) {
  for (const auto& [name, value] : headers) {
    if (name != "connection") continue;
    const auto wanted = lower_case(value);
    if (wanted.find("close") != std::string::npos) return false;
    if (wanted.find("keep-alive") != std::string::npos) return true;
  }
  return by_default;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::optional<uint64_t> parse_digits(std::string_view text) { return parse_number<uint64_t>(text); }

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
        c == '_' || c == '~')
      out += c;
    else
      out.append({'%', kDigits[code / 16], kDigits[code % 16]});
  }
  return out;
}

std::optional<char> percent_code(std::string_view text, size_t at) {
  if (text.size() < at + 3 || text[at] != '%') return std::nullopt;
  const int high = hex(text[at + 1]), low = hex(text[at + 2]);
  return high < 0 || low < 0 ? std::nullopt : std::optional(static_cast<char>(high * 16 + low));
}

const std::string* HttpHead::header(std::string_view name) const { return find_header(headers, name); }

std::optional<size_t> head_end(std::string_view text) {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (text.substr(at + 1).starts_with("\r\n")) return at + 3;
    if (text.substr(at + 1).starts_with('\n')) return at + 2;
  }
  return std::nullopt;
}

Result<HttpHead> read_http_head(std::string_view text) {
  const auto line = take_line(text);
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || first == 0 || first > 32)
    return invalid_input("the first line is not 'METHOD PATH HTTP/1.1'");
  HttpHead head;
  head.method = line.substr(0, first);
  for (const char c : head.method)
    if (!is_token(c)) return invalid_input("the method has a character that is not allowed");
  const auto version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return invalid_input("expected HTTP/1.1 or HTTP/1.0");
  auto target = line.substr(first + 1, last - first - 1);
  for (const char c : target)
    if (static_cast<unsigned char>(c) <= 32 || c == 127)
      return invalid_input("the path has a blank or control character");
  // The form with a host in it, which proxies are sent: "http://host/path".
  if (target.starts_with("http://")) {
    const auto slash = target.find('/', 7);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (!target.starts_with('/') && target != "*") return invalid_input("the path does not start with '/'");
  const auto question = target.find('?');
  if (question != std::string_view::npos) head.query = target.substr(question + 1);
  const auto path = target.substr(0, question);
  HEDDLE_ASSIGN_OR_RETURN(head.path, percent_decode(path));
  for (size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (end > begin) {
      HEDDLE_ASSIGN_OR_RETURN(head.parts.emplace_back(), percent_decode(path.substr(begin, end - begin)));
    }
    begin = end + 1;
  }
  HEDDLE_RETURN_IF_ERROR(read_headers(text, head.headers));
  HEDDLE_RETURN_IF_ERROR(read_length(head.headers, head.content_length));
  // Older clients would need to be told.
  head.keep_alive = version == "HTTP/1.1" && keeps_alive(head.headers, true);
  if (const auto* expect = head.header("expect"))
    head.expects_continue = lower_case(*expect) == "100-continue";
  head.chunked = head.header("transfer-encoding") != nullptr;
  if (head.chunked && head.content_length)
    return invalid_input("both Content-Length and Transfer-Encoding; expected one of them");
  return head;
}

Result<HttpAnswerHead> read_http_answer_head(std::string_view text) {
  const auto line = take_line(text);
  HttpAnswerHead head;
  if (!line.starts_with("HTTP/1.") || line.size() < 12) return invalid_input("the answer is not HTTP/1");
  head.status = static_cast<int>(parse_digits(line.substr(9, 3)).value_or(0));
  if (head.status < 100) return invalid_input("the answer has no status");
  HEDDLE_RETURN_IF_ERROR(read_headers(text, head.headers));
  HEDDLE_RETURN_IF_ERROR(read_length(head.headers, head.content_length));
  head.chunked = find_header(head.headers, "transfer-encoding") != nullptr;
  if (head.status < 200 || head.status == 204) head.content_length = 0;
  head.keep_alive = keeps_alive(head.headers, line[7] == '1') && (head.chunked || head.content_length);
  return head;
}

std::optional<std::string> read_chunks(std::string_view text) {
  std::string body;
  for (;;) {
    const auto line = text.find("\r\n");
    if (line == std::string_view::npos) return std::nullopt;
    const auto size = text.substr(0, std::min(line, text.find(';')));  // behind it: the chunk's own settings
    uint64_t bytes = 0;
    const auto read = std::from_chars(size.data(), size.data() + size.size(), bytes, 16);
    if (size.empty() || read.ec != std::errc() || read.ptr != size.data() + size.size()) return std::nullopt;
    text.remove_prefix(line + 2);
    if (bytes == 0) return body;  // headers may follow
    if (text.size() < 2 || bytes > text.size() - 2 || text.substr(bytes, 2) != "\r\n") return std::nullopt;
    body += text.substr(0, bytes);
    text.remove_prefix(bytes + 2);
  }
}

HttpResponse json_response(const Json& json, int status) {
  HttpResponse response;
  response.status = status;
  response.body = json_text(json);
  return response;
}

HttpResponse http_error(int status, std::string_view message) {
  auto response = json_response({{"error", message}}, status);
  response.body += '\n';
  return response;
}

std::string http_response_head(const HttpResponse& response, bool keep_alive) {
  const auto* reason = std::ranges::find(kReasons, response.status, &Reason::status);
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     (reason == std::end(kReasons) ? "Status" : reason->text) +
                     "\r\nContent-Type: " + response.content_type +
                     "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n";
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  head += keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

bool same_secret(std::string_view given, std::string_view wanted) {
  unsigned char differs = given.size() != wanted.size();
  for (size_t i = 0; i < given.size(); ++i)
    differs |= static_cast<unsigned char>(given[i] ^ (wanted.empty() ? '\0' : wanted[i % wanted.size()]));
  return differs == 0;
}

}  // namespace heddle
