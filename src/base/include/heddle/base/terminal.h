// The terminal behind standard output and error: its width, and colours that help a reader.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

// A terminal that can move its cursor: not TERM=dumb.
bool is_terminal(int fd);
// In characters; 0 if `fd` is no terminal.
int terminal_width(int fd);
int terminal_height(int fd);

// All of it, in as few calls as the kernel allows. A closed standard error is no error.
void write_stderr(std::string_view text);

enum class ColorWhen : uint8_t { kAuto, kAlways, kNever };
// "auto", "always" or "never".
std::optional<ColorWhen> color_when(std::string_view name);

// Whether a stream gets colours. `no_color`: the variable NO_COLOR, which may be null; it and a stream that is no
// terminal turn kAuto off. The user's kAlways holds all the same (no-color.org).
bool has_color(ColorWhen when, bool terminal, const char* no_color);

// Decides for this process's standard output and standard error; before the first call neither has colours. A
// standard output that is `for_machines` (JSON) never has. Not thread-safe: for the start of a program.
void set_color(ColorWhen when, bool for_machines);

enum class Ink : uint8_t { kBold, kDim, kRed, kGreen, kYellow };
// The text between the escapes of its ink, or as it is if standard output (standard error) has no colours.
std::string painted(Ink ink, std::string text);
std::string painted_error(Ink ink, std::string text);

// Without the escapes of painted(): for alignment.
std::string without_color(std::string_view text);

// With '?' for control characters (of UTF-8: C0, DEL and C1) but line ends, tabs and the escapes of painted(): names
// come from files that others wrote, and must not move the cursor or speak to the terminal.
std::string without_controls(std::string_view text);

// The same on one line: line ends, tabs and escapes are blanks.
std::string one_line(std::string_view text);

// Writes all of it, without_controls() if `to` is a terminal. A write that fails shows in ferror().
void write_text(std::FILE* to, std::string_view text);

}  // namespace heddle
