#include "heddle/runtime/segment_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "heddle/base/content_hash.h"
#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/cost/profile_store.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

struct Header {
  std::array<char, 8> magic = {'h', 'e', 'd', 'd', 'l', 'e', 's', '1'};
  uint64_t key = 0, size = 0, checksum = 0;
  // The contents begin at a multiple of 64, the alignment for compiled weights.
  std::array<char, 32> padding = {};
};
static_assert(sizeof(Header) == 64);

constexpr const char* kExtension = ".segment";
constexpr int64_t kMostBytes = int64_t{64} << 30;

}  // namespace

std::string_view SegmentCache::Entry::contents() const { return file_.bytes().substr(sizeof(Header)); }

std::string SegmentCache::default_folder() {
  return (fs::path(ProfileStore::default_path()).parent_path() / "segments").string();
}

Result<std::unique_ptr<SegmentCache>> SegmentCache::open(std::string folder, int64_t limit_bytes) {
  std::error_code error;
  const bool fresh = fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    return io_error(folder + ": cannot be made a folder for compiled segments" +
                    (error ? ": " + error.message() : "; it is something else"));
  }
  if (fresh) fs::permissions(folder, fs::perms::owner_all, error);
  return std::unique_ptr<SegmentCache>(new SegmentCache(std::move(folder), limit_bytes));
}

std::string SegmentCache::path_of(uint64_t key) const {
  return (fs::path(folder_) / (hex64(key) + kExtension)).string();
}

std::shared_ptr<SegmentCache::Entry> SegmentCache::find(uint64_t key) const {
  const std::string path = path_of(key);
  auto file = MappedFile::open(path, kMostBytes);
  if (!file.ok() || file->bytes().size() < sizeof(Header)) return nullptr;
  Header header;
  std::memcpy(&header, file->bytes().data(), sizeof header);
  const std::string_view contents = file->bytes().substr(sizeof header);
  if (header.magic != Header().magic || header.key != key || header.size != contents.size() ||
      header.checksum != content_hash(contents))
    return nullptr;
  // The time of the last use, by which make_room() selects files.
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return std::make_shared<Entry>(std::move(file).value());
}

Status SegmentCache::store(uint64_t key, std::string_view contents) {
  const auto bytes = static_cast<int64_t>(contents.size() + sizeof(Header));
  if (limit_bytes_ > 0 && bytes > limit_bytes_) return {};
  make_room(bytes);
  Header header;
  header.key = key;
  header.size = contents.size();
  header.checksum = content_hash(contents);
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text += contents;
  return write_file_atomic(path_of(key), text);
}

void SegmentCache::make_room(int64_t bytes) const {
  if (limit_bytes_ <= 0) return;
  struct File {
    fs::file_time_type used;
    fs::path path;
    int64_t bytes;
  };
  std::vector<File> files;
  int64_t total = bytes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kExtension) continue;
    std::error_code gone;
    const auto size = entry.file_size(gone);
    const auto used = entry.last_write_time(gone);
    if (gone) continue;  // another process has deleted it
    files.push_back({used, entry.path(), static_cast<int64_t>(size)});
    total += files.back().bytes;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  for (const File& file : files) {
    if (total <= limit_bytes_) return;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace heddle
