#include "heddle/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "heddle/base/units.h"

namespace heddle {
namespace {

Error open_error(int error) {
  if (error == ENOENT || error == ENOTDIR) return not_found("there is no such file");
  return io_error(std::string("cannot be opened: ") + std::strerror(error));
}

FileIdentity identity_of(const struct stat& info) {
  const auto ns = [](const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {info.st_dev, info.st_ino, info.st_size, ns(info.st_mtim), ns(info.st_ctim)};
}

// O_NONBLOCK: opening a named pipe must not block before fstat() shows that it is no regular file.
Result<int> open_regular(const std::string& path, int64_t max_bytes, FileIdentity* identity) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return open_error(errno);
  struct stat info {};
  Error error(Code::kInvalidInput, "is not a regular file");
  if (::fstat(fd, &info) != 0) {
    error = io_error(std::string("cannot be examined: ") + std::strerror(errno));
  } else if (S_ISREG(info.st_mode)) {
    *identity = identity_of(info);
    if (info.st_size <= max_bytes) return fd;
    error = invalid_input("has " + format_bytes(info.st_size) + ", the limit is " + format_bytes(max_bytes));
  }
  ::close(fd);
  return error;
}

}  // namespace

bool MappedFile::is_still(const std::string& path) const {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && identity_of(info) == identity_;
}

void MappedFile::populate() const {
#ifdef MADV_POPULATE_READ
  constexpr size_t kStep = size_t{4} << 20;
  for (size_t at = 0; at < size_; at += kStep) {
    // Older kernels lack MADV_POPULATE_READ; pages are then mapped when read.
    if (::madvise(const_cast<char*>(data_) + at, std::min(kStep, size_ - at), MADV_POPULATE_READ) != 0)
      return;
  }
#endif
}

Result<MappedFile> MappedFile::open(const std::string& path, int64_t max_bytes) {
  MappedFile file;
  HEDDLE_ASSIGN_OR_RETURN(const int fd, open_regular(path, max_bytes, &file.identity_));
  file.size_ = static_cast<size_t>(file.identity_.size);
  if (file.size_ > 0) {
    void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
      file.size_ = 0;
    else
      file.data_ = static_cast<const char*>(data);
    if (file.data_ == nullptr) {
      const int error = errno;
      ::close(fd);
      return io_error(std::string("cannot be mapped: ") + std::strerror(error));
    }
  }
  ::close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      identity_(other.identity_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(identity_, other.identity_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace heddle
