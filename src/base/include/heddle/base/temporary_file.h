#pragma once

#include <string>

namespace heddle {

// A path for a file of this process in the system's folder for such; whatever is there is removed with it.
class TemporaryFile {
 public:
  // Two of one name in one process are one file.
  explicit TemporaryFile(const std::string& name);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace heddle
