// Compiled segments on disk, one file each, for cold starts (docs/cold-start.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/mapped_file.h"
#include "heddle/base/status.h"

namespace heddle {

// Safe to use from several threads and processes at once: files are written beside and renamed.
class SegmentCache {
 public:
  // Makes the folder, for its owner alone, when it is missing. `limit_bytes` > 0: most bytes of all files;
  // the least recently used go first.
  static Result<std::unique_ptr<SegmentCache>> open(std::string folder, int64_t limit_bytes);
  // "segments" in Heddle's part of the user's cache folder.
  static std::string default_folder();

  // A mapped file; contents() are the bytes that were stored.
  class Entry {
   public:
    explicit Entry(MappedFile file) : file_(std::move(file)) {}
    std::string_view contents() const;

   private:
    MappedFile file_;
  };
  // Null when there is none, or it is cut short or changed. O(size): the contents are checked against their
  // checksum.
  std::shared_ptr<Entry> find(uint64_t key) const;
  // What alone exceeds the limit is not stored, without an error.
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
