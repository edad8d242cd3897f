#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "heddle/base/file.h"
#include "heddle/base/numbers.h"
#include "shared_store.h"

namespace heddle {
namespace {

constexpr int64_t kMostEntryBytes = int64_t{64} << 20;

// The folder's lock while it lives. The system releases it when the process dies.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ >= 0) locked_ = ::flock(file_, LOCK_EX) == 0;
  }
  ~FolderLock() {
    if (file_ >= 0) ::close(file_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool locked() const { return locked_; }

 private:
  int file_;
  bool locked_ = false;
};

// A file's first line is its revision, the rest is the value.
class FolderStore final : public SharedStore {
 public:
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) {}

  Result<Entry> get(const std::string& key) override {
    const std::string path = path_of(key);
    if (!file_exists(path)) return Entry{};
    HEDDLE_ASSIGN_OR_RETURN(std::string text, read_file(path, kMostEntryBytes));
    const size_t end = text.find('\n');
    const auto revision = parse_number<uint64_t>(text.substr(0, std::min(end, text.size())));
    if (end == std::string::npos || !revision || *revision == 0)
      return invalid_input(path + ": this is no entry of a server's state; remove the file to begin anew");
    return Entry{text.substr(end + 1), *revision};
  }

  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    const FolderLock lock(folder_ + "/lock");
    if (!lock.locked()) return io_error(folder_ + "/lock: cannot be locked: " + std::strerror(errno));
    HEDDLE_ASSIGN_OR_RETURN(const Entry now, get(key));
    if (now.revision != revision) return std::optional<uint64_t>();
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(path_of(key), std::to_string(revision + 1) + "\n" + value));
    return std::optional(revision + 1);
  }

 private:
  std::string path_of(const std::string& key) const { return folder_ + "/" + key; }
  const std::string folder_;
};

}  // namespace

Result<std::shared_ptr<SharedStore>> folder_store(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return io_error(path + ": cannot make this folder: " + std::strerror(errno));
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return invalid_input(path + ": expected a folder for the server's state");
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0)
    return io_error(path + ": cannot write into this folder: " + std::strerror(errno));
  return std::shared_ptr<SharedStore>(std::make_shared<FolderStore>(path));
}

Result<std::shared_ptr<SharedStore>> open_shared_store(const std::string& where, const std::string& bucket) {
  return where.starts_with("nats://") ? nats_store(where, bucket) : folder_store(where);
}

}  // namespace heddle
