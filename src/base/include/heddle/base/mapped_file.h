// A file's bytes without copying them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle {

struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t size = 0, modified_ns = 0, changed_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

// A regular file, mapped read-only. Movable; the view is valid while it lives.
class MappedFile {
 public:
  // Errors carry no path: callers add it as context.
  static Result<MappedFile> open(const std::string& path, int64_t max_bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  // Is the file of this path still the one that was opened, and as it was? By what the system changes when
  // somebody writes into it.
  bool is_still(const std::string& path) const;
  // Maps the pages, for another thread that reads the bytes in their order meanwhile. Only saves time.
  void populate() const;

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
};

}  // namespace heddle
