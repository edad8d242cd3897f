// An input as a file, for readers that take a path.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "require.h"

// Unlike write_file_atomic(), this does not wait for the disk.
inline void write_input(const std::string& path, std::string_view content) {
  FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr && std::fwrite(content.data(), 1, content.size(), file) == content.size());
  std::fclose(file);
}
