// A file for readers that take a path: one a process, removed at its end.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

class ScratchFile {
 public:
  explicit ScratchFile(std::string name) : name_(std::move(name)) {
    folder_ = (std::filesystem::temp_directory_path() / "heddle-fuzz-XXXXXX").string();
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~ScratchFile() {
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path() const { return folder_ + "/" + name_; }

  void write(std::string_view content) const {
    FILE* file = std::fopen(path().c_str(), "wb");
    if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file) != content.size())
      std::abort();
    std::fclose(file);
  }

 private:
  const std::string name_;
  std::string folder_;
};
