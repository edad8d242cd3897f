// Formatted output of verbs. Writing that fails throws nothing: main looks at stdout at the end, and nobody
// reads a stderr that is closed.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace heddle::cli {

template <class... Args>
void print(std::FILE* to, fmt::format_string<Args...> format, Args&&... args) {
  const auto text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), to);
}
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  cli::print(stdout, format, std::forward<Args>(args)...);
}

}  // namespace heddle::cli
