// A file's bytes without copying them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle {

// A regular file, mapped read-only. Movable; the view is valid while it lives.
class MappedFile {
 public:
  // Errors carry no path: callers add it as context.
  static Result<MappedFile> open(const std::string& path, int64_t max_bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace heddle
