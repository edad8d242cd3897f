// Read-only access to a file's bytes without copying them.
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
  // True if `path` still names the file that was opened and the system's metadata show no write since.
  bool is_still(const std::string& path) const;
  // Maps the pages ahead while another thread reads the bytes in order. Only saves time.
  void populate() const;

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
};

}  // namespace heddle
