#include "heddle/base/temporary_file.h"

#include <unistd.h>

#include <filesystem>

namespace heddle {

TemporaryFile::TemporaryFile(const std::string& name) {
  std::error_code error;
  auto folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";
  path_ = (folder / ("heddle-" + std::to_string(::getpid()) + "-" + name)).string();
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace heddle
