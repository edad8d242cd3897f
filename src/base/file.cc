#include "heddle/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "heddle/base/units.h"

namespace heddle {
namespace {

// Closes on destruction. close() returns whether the last write-back worked; some file systems report ENOSPC
// then.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// An Error with the system's message for the current errno.
Error system_error(const std::string& action, const std::string& path) {
  const int number = errno;
  const Code code = number == ENOENT ? Code::kNotFound : Code::kIo;
  return Error(code, action + ": " + std::generic_category().message(number)).with_context(path);
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Status write_in_place(const std::string& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return system_error("cannot open for writing", path);
  if (!write_all(file.get(), content) || !file.close()) return system_error("cannot write", path);
  return {};
}

// Unique among threads and processes that may write the same path concurrently.
std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  return path + "." + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1)) + ".tmp";
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Resolves links, so that a symbolic link stays and its target is replaced.
std::string follow_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string target = resolved;
  std::free(resolved);
  return target;
}

// Writes and syncs the temporary file and renames it; the caller removes it on failure.
Status fill_and_rename(const std::string& temporary, const std::string& path, std::string_view content,
                       const struct stat* old) {
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid()) return system_error("cannot create a file beside it", path);
  if (old != nullptr && ::fchmod(file.get(), old->st_mode & 07777) != 0)
    return system_error("cannot set its mode", path);
  if (!write_all(file.get(), content)) return system_error("cannot write", path);
  if (::fsync(file.get()) != 0 || !file.close()) return system_error("cannot write to disk", path);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error("cannot replace", path);
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, int64_t max_bytes) {
  // Non-blocking, so that opening a pipe without a writer cannot hang.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return system_error("cannot open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error("cannot read its size", path);
  if (S_ISDIR(info.st_mode)) return invalid_input("is a directory, expected a file").with_context(path);
  if (!S_ISREG(info.st_mode)) return invalid_input("is not a regular file").with_context(path);

  const auto too_large = [&] {
    return invalid_input("is larger than the " + format_bytes(max_bytes) + " that are read here")
        .with_context(path);
  };
  if (info.st_size > max_bytes) return too_large();
  std::string content;
  // The size is only a hint: the file may grow, /proc files report 0. One extra byte detects the end.
  size_t used = 0;
  while (true) {
    const size_t room = std::max<size_t>(static_cast<size_t>(info.st_size) + 1, used + 65536);
    content.resize(room);
    const ssize_t n = ::read(file.get(), content.data() + used, room - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read", path);
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used > static_cast<size_t>(max_bytes)) return too_large();
  }
  content.resize(used);
  return content;
}

Status write_file_atomic(const std::string& path, std::string_view content) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) {
    return invalid_input("is a directory, expected a file to write").with_context(path);
  }
  // A pipe or a device such as /dev/stdout has no old content to keep.
  if (exists && !S_ISREG(old.st_mode)) return write_in_place(path, content);

  const std::string target = exists ? follow_links(path) : path;
  const std::string temporary = temporary_name(target);
  Status status = fill_and_rename(temporary, target, content, exists ? &old : nullptr);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  // The content is already safe. Syncing the folder makes the new name survive a power failure too.
  const Descriptor folder(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
  return {};
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace heddle
