#include <cerrno>
#include <cstring>

#include "heddle/base/numbers.h"
#include "shared_store.h"

namespace heddle {
namespace {

constexpr int64_t kMostEntryBytes = int64_t{64} << 20;

// The folder's lock while it lives. The system releases it when the process dies.
class FolderLock {
 public:
  FolderLock(FileCalls& files, const std::string& path) : files_(files), file_(files.lock(path)) {}
  ~FolderLock() {
    if (file_ >= 0) files_.close(file_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  int error() const { return file_ < 0 ? -file_ : 0; }

 private:
  FileCalls& files_;
  const int file_;
};

// A file's first line is its revision, the rest is the value.
class FolderStore final : public SharedStore {
 public:
  FolderStore(FileCalls& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  Result<Entry> get(const std::string& key) override {
    const std::string path = path_of(key);
    auto read = files_.read(path, kMostEntryBytes);
    if (!read.ok() && read.error().code() == Code::kNotFound) return Entry{};
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, std::move(read));
    const size_t end = text.find('\n');
    const auto revision = parse_number<uint64_t>(text.substr(0, std::min(end, text.size())));
    if (end == std::string::npos || !revision || *revision == 0)
      return invalid_input(path + ": this is no entry of a server's state; remove the file to begin anew");
    return Entry{text.substr(end + 1), *revision};
  }

  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    const FolderLock lock(files_, folder_ + "/lock");
    if (lock.error() != 0)
      return io_error(folder_ + "/lock: cannot be locked: " + std::strerror(lock.error()));
    HEDDLE_ASSIGN_OR_RETURN(const Entry now, get(key));
    if (now.revision != revision) return std::optional<uint64_t>();
    const std::string path = path_of(key), temporary = path + ".tmp";
    files_.remove(temporary);  // of a server that died while it wrote
    HEDDLE_RETURN_IF_ERROR(
        replace_file(files_, temporary, path, std::to_string(revision + 1) + "\n" + value));
    return std::optional(revision + 1);
  }

 private:
  std::string path_of(const std::string& key) const { return folder_ + "/" + key; }
  FileCalls& files_;
  const std::string folder_;
};

}  // namespace

Result<std::shared_ptr<SharedStore>> folder_store(const std::string& path, FileCalls& files) {
  if (const int made = files.make_folder(path); made != 0 && made != -EEXIST)
    return io_error(path + ": cannot make this folder: " + std::strerror(-made));
  // Also when it is there: whoever has made it may have died before this.
  if (const int lost = files.sync_folder(parent_folder(path)); lost != 0)
    return io_error(path + ": the folder that it is in cannot be written to disk: " + std::strerror(-lost));
  const int failed = files.check_folder(path);
  if (failed == -ENOTDIR) return invalid_input(path + ": expected a folder for the server's state");
  if (failed != 0) return io_error(path + ": cannot write into this folder: " + std::strerror(-failed));
  return std::shared_ptr<SharedStore>(std::make_shared<FolderStore>(files, path));
}

Result<std::shared_ptr<SharedStore>> open_shared_store(const std::string& where, const std::string& bucket) {
  return where.starts_with("nats://") ? nats_store(where, bucket) : folder_store(where);
}

}  // namespace heddle
