#include "heddle/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

namespace heddle {
namespace {

constexpr std::string_view kEscape = "\x1b[";
constexpr char kEscapeEnd = 'm';
constexpr const char* kInks[] = {"1", "2", "1;31", "32", "33"};
constexpr const char* kNoInk = "0";

bool output_has_color = false;
bool error_has_color = false;

std::string between_escapes(Ink ink, std::string text) {
  return std::string(kEscape) + kInks[static_cast<size_t>(ink)] + kEscapeEnd + std::move(text) +
         std::string(kEscape) + kNoInk + kEscapeEnd;
}

// Of the escape that `text` begins with; 0: it is none of painted()'s.
size_t size_of_escape(std::string_view text) {
  if (!text.starts_with(kEscape)) return 0;
  const size_t end = text.find(kEscapeEnd);
  if (end == std::string_view::npos) return 0;
  const auto ink = text.substr(kEscape.size(), end - kEscape.size());
  return ink == kNoInk || std::ranges::find(kInks, ink) != std::end(kInks) ? kEscape.size() + ink.size() + 1
                                                                           : 0;
}

// Of the control character that `text` begins with; 0: it begins with none. C1 has two bytes in UTF-8.
size_t size_of_control(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) == 0xC2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xA0) return 2;
  return byte(0) == 0x7F || (byte(0) < ' ' && byte(0) != '\n' && byte(0) != '\t') ? 1 : 0;
}

winsize size_of_terminal(int fd) {
  winsize size{};
  if (isatty(fd) == 0 || ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

}  // namespace

bool is_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

int terminal_width(int fd) { return size_of_terminal(fd).ws_col; }

int terminal_height(int fd) { return size_of_terminal(fd).ws_row; }

void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::optional<ColorWhen> color_when(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames = {"auto", "always", "never"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<ColorWhen>(i);
  return std::nullopt;
}

bool has_color(ColorWhen when, bool terminal, const char* no_color) {
  if (when != ColorWhen::kAuto) return when == ColorWhen::kAlways;
  return terminal && (no_color == nullptr || *no_color == '\0');
}

void set_color(ColorWhen when, bool for_machines) {
  const char* no_color = std::getenv("NO_COLOR");
  output_has_color = !for_machines && has_color(when, is_terminal(STDOUT_FILENO), no_color);
  error_has_color = has_color(when, is_terminal(STDERR_FILENO), no_color);
}

std::string painted(Ink ink, std::string text) {
  return output_has_color && !text.empty() ? between_escapes(ink, std::move(text)) : text;
}

std::string painted_error(Ink ink, std::string text) {
  return error_has_color && !text.empty() ? between_escapes(ink, std::move(text)) : text;
}

std::string without_color(std::string_view text) {
  std::string out;
  size_t at = 0;
  for (size_t escape = 0; (escape = text.find(kEscape, at)) != std::string_view::npos;) {
    const size_t end = text.find(kEscapeEnd, escape);
    if (end == std::string_view::npos) break;
    out += text.substr(at, escape - at);
    at = end + 1;
  }
  return out + std::string(text.substr(at));
}

std::string without_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t escape = size_of_escape(text);
    const size_t control = escape > 0 ? 0 : size_of_control(text);
    const size_t taken = std::max({escape, control, size_t{1}});
    if (control > 0)
      out += '?';
    else
      out += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string line = without_controls(text);
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' '; }, ' ');
  return line;
}

void write_text(std::FILE* to, std::string_view text) {
  std::string harmless;
  if (isatty(fileno(to)) == 1) text = harmless = without_controls(text);
  std::fwrite(text.data(), 1, text.size(), to);
}

}  // namespace heddle
