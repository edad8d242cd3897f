// The calls to the system that change files, for code that also runs in a simulation (src/serve/simulation). What was
// not synced may be lost, or be there in part, once the host has crashed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

class FileCalls {
 public:
  virtual ~FileCalls() = default;
  // Each returns a file's number, else 0; or -errno.
  virtual int create(const std::string& path, std::optional<unsigned> mode) = 0;  // must not be there
  virtual int write(int file, std::string_view content) = 0;                      // all of it
  virtual int sync(int file) = 0;
  virtual int close(int file) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int link(const std::string& from, const std::string& to) = 0;  // -EEXIST: the name is taken
  virtual int remove(const std::string& path) = 0;
  virtual int make_folder(const std::string& path) = 0;  // for this user alone
  virtual int check_folder(
      const std::string& path) = 0;  // -ENOTDIR: it is none; else whether files can be put there
  virtual int sync_folder(const std::string& path) = 0;                              // the names in it
  virtual Result<std::string> read(const std::string& path, int64_t max_bytes) = 0;  // kNotFound
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;      // names, in no order
};

FileCalls& system_files();

// Puts a file with this content at `path`: readers see the old content or the new, and so does whoever reads after a
// crash of the host. After success the new one stays. `temporary`: in the same folder; it is not there before and
// after. On any error but that of syncing the folder, `path` is unchanged. `mode`: of the file; none: the usual one.
Status replace_file(FileCalls& files, const std::string& temporary, const std::string& path,
                    std::string_view content, std::optional<unsigned> mode = std::nullopt);

// The same for a name that nobody has yet. False: it is taken, and stays as it is. The temporary file is `path` with
// an ending; a crash may leave it. If somebody removes it meanwhile, the answer is false, too.
Result<bool> put_file(FileCalls& files, const std::string& path, std::string_view content);

std::string parent_folder(const std::string& path);

}  // namespace heddle
