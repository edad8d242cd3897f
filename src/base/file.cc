#include "heddle/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "heddle/base/file_calls.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

// Closes on destruction.
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

 private:
  const int fd_;
};

// An Error with the system's message.
Error system_error(const std::string& action, const std::string& path, int number = errno) {
  const Code code = number == ENOENT ? Code::kNotFound : Code::kIo;
  return Error(code, action + ": " + std::generic_category().message(number)).with_context(path);
}

Status write_in_place(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return system_error("cannot open for writing", path);
  const int failed = system_files().write(file, content), closed = system_files().close(file);
  if (failed != 0 || closed != 0) return system_error("cannot write", path, failed != 0 ? -failed : -closed);
  return {};
}

// Unique among threads and processes that may write the same path concurrently.
std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  return path + "." + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1)) + ".tmp";
}

// Resolves links, so that a symbolic link stays and its target is replaced.
std::string follow_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string target = resolved;
  std::free(resolved);
  return target;
}

int error_of(bool worked) { return worked ? 0 : -errno; }

class SystemFiles final : public FileCalls {
 public:
  int create(const std::string& path, std::optional<unsigned> mode) override {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 || !mode || ::fchmod(file, *mode) == 0) return file < 0 ? -errno : file;
    const int failed = -errno;
    ::close(file);
    ::unlink(path.c_str());
    return failed;
  }
  int write(int file, std::string_view content) override {
    while (!content.empty()) {
      const ssize_t n = ::write(file, content.data(), content.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return -errno;
      content.remove_prefix(static_cast<size_t>(n));
    }
    return 0;
  }
  int sync(int file) override { return error_of(::fsync(file) == 0); }
  // Some file systems report only here that no space is left.
  int close(int file) override { return error_of(::close(file) == 0); }
  int rename(const std::string& from, const std::string& to) override {
    return error_of(::rename(from.c_str(), to.c_str()) == 0);
  }
  int link(const std::string& from, const std::string& to) override {
    return error_of(::link(from.c_str(), to.c_str()) == 0);
  }
  int remove(const std::string& path) override { return error_of(::unlink(path.c_str()) == 0); }
  int make_folder(const std::string& path) override { return error_of(::mkdir(path.c_str(), 0700) == 0); }
  int check_folder(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return -ENOTDIR;
    return error_of(::access(path.c_str(), R_OK | W_OK | X_OK) == 0);
  }
  int sync_folder(const std::string& path) override {
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Not every folder can be read, and not every file system syncs folders; those that do say what went wrong.
    if (!folder.valid()) return errno == EACCES ? 0 : -errno;
    return ::fsync(folder.get()) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : -errno;
  }
  Result<std::string> read(const std::string& path, int64_t max_bytes) override {
    return read_file(path, max_bytes);
  }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      names.push_back(at->path().filename().string());
    if (error) return system_error("cannot list", folder, error.value());
    return names;
  }
};

// Fills and syncs the new file, which is open as `file`, and gives it its name by `show`.
template <class Fill, class Show>
Status show_file(FileCalls& files, int file, const std::string& temporary, const std::string& path,
                 const Fill& fill, const Show& show) {
  if (const auto folder = parent_folder(path); file == -ENOENT && folder != ".")
    return not_found("there is no folder '" + folder + "'; create it first").with_context(path);
  if (file < 0) return system_error("cannot create a file beside it", path, -file);
  const char* action = "cannot write";
  int failed = fill(file);
  if (failed == 0) {
    action = "cannot write to disk";
    failed = files.sync(file);
  }
  const int closed = files.close(file);
  if (failed == 0) failed = closed;
  if (failed == 0) {
    action = "cannot replace";
    failed = show();
  }
  if (failed != 0) {
    files.remove(temporary);
    return system_error(action, path, -failed);
  }
  // The content is safe by now, but the name may still stand for the old one after a power failure.
  if (const int lost = files.sync_folder(parent_folder(path)); lost != 0)
    return system_error("cannot write its folder to disk", path, -lost);
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

Result<std::vector<std::string>> files_in(const std::string& folder,
                                          std::span<const std::string_view> endings, bool below) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  // The iterators' ++ throws, increment() does not.
  const auto add = [&](auto at) {
    for (; !error && at != decltype(at)(); at.increment(error)) {
      const auto& path = at->path();
      if (std::ranges::find(endings, path.extension().string()) != endings.end())
        paths.push_back(path.string());
    }
  };
  if (below) {
    add(fs::recursive_directory_iterator(folder, error));
  } else {
    add(fs::directory_iterator(folder, error));
  }
  if (error) return system_error("cannot list", folder, error.value());
  std::sort(paths.begin(), paths.end());
  return paths;
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
  return replace_file(system_files(), temporary_name(target), target, content,
                      exists ? std::optional<unsigned>(old.st_mode & 07777) : std::nullopt);
}

Status write_file_atomic(const std::string& path,
                         const std::function<Status(const AppendPiece& append)>& write) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    return invalid_input("is no regular file that could be replaced").with_context(path);
  const std::string target = exists ? follow_links(path) : path, temporary = temporary_name(target);
  FileCalls& files = system_files();
  Status written;
  const auto fill = [&](int file) {
    int failed = 0;
    written = write([&](std::string_view piece) -> Status {
      failed = files.write(file, piece);
      return failed == 0 ? Status() : Status(system_error("cannot write", path, -failed));
    });
    return written.ok() || failed != 0 ? failed : -ECANCELED;
  };
  const auto mode = exists ? std::optional<unsigned>(old.st_mode & 07777) : std::nullopt;
  Status shown = show_file(files, files.create(temporary, mode), temporary, target, fill,
                           [&] { return files.rename(temporary, target); });
  return written.ok() ? shown : written;
}

FileCalls& system_files() {
  static SystemFiles files;
  return files;
}

Status replace_file(FileCalls& files, const std::string& temporary, const std::string& path,
                    std::string_view content, std::optional<unsigned> mode) {
  return show_file(
      files, files.create(temporary, mode), temporary, path,
      [&](int file) { return files.write(file, content); }, [&] { return files.rename(temporary, path); });
}

Result<bool> put_file(FileCalls& files, const std::string& path, std::string_view content) {
  std::string temporary;
  int file = -EEXIST;
  for (int n = 0; file == -EEXIST; ++n) {
    temporary = path + "." + std::to_string(n) + ".tmp";
    file = files.create(temporary, std::nullopt);
  }
  bool taken = false;
  const auto link = [&] {
    const int failed = files.link(temporary, path);
    // Or the temporary file was taken for one that a crash has left, so others have been at work since.
    taken = failed == -EEXIST || failed == -ENOENT;
    if (failed == 0 || taken) files.remove(temporary);
    return taken ? 0 : failed;
  };
  HEDDLE_RETURN_IF_ERROR(show_file(
      files, file, temporary, path, [&](int to) { return files.write(to, content); }, link));
  return !taken;
}

std::string parent_folder(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : path.rfind('/', end);
  if (slash == std::string::npos) return path.starts_with('/') ? "/" : ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string file_head(const std::string& path, size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // as in read_file()
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::string head(most, '\0');
  size_t used = 0;
  while (used < most) {
    const ssize_t n = ::read(file.get(), head.data() + used, most - used);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  head.resize(used);
  return head;
}

std::string first_line(const std::string& path) {
  constexpr size_t kMost = 4096;
  const std::string head = file_head(path, kMost);
  return head.substr(0, head.find('\n'));
}

}  // namespace heddle
