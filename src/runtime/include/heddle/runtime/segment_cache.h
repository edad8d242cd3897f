// Compiled segments on disk, one file each, for cold starts (docs/cold-start.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "heddle/base/mapped_file.h"
#include "heddle/base/status.h"

namespace heddle {

// Safe for concurrent threads and processes: files are written under another name, then renamed.
class SegmentCache {
 public:
  // Creates the folder if it is missing, accessible to its owner alone. `limit_bytes` > 0 limits the total
  // size of the files; the least recently used are deleted first.
  static Result<std::unique_ptr<SegmentCache>> open(std::string folder, int64_t limit_bytes);
  // The folder "segments" in Heddle's part of the user's cache folder.
  static std::string default_folder();

  // A mapped file; contents() are the stored bytes.
  class Entry {
   public:
    explicit Entry(MappedFile file) : file_(std::move(file)) {}
    std::string_view contents() const;

   private:
    MappedFile file_;
  };
  // Null if the file is missing, truncated or corrupt. O(size), as the checksum of the contents is verified.
  std::shared_ptr<Entry> find(uint64_t key) const;
  // Contents larger than the limit are not stored; this is no error.
  Status store(uint64_t key, std::string_view contents);

 private:
  SegmentCache(std::string folder, int64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}
  std::string path_of(uint64_t key) const;
  void make_room(int64_t bytes) const;

  std::string folder_;
  int64_t limit_bytes_;
};

}  // namespace heddle
