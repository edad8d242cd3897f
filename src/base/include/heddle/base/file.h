// Whole-file reading and atomic writing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// Reads a regular file of at most `max_bytes`. Errors (with the path as context): not found, a directory, too
// large, unreadable.
Result<std::string> read_file(const std::string& path, int64_t max_bytes = int64_t{4} << 30);

// Writes to a temporary file beside `path`, syncs it and renames: readers see the old or the new content,
// never half. On any failure but that of syncing the folder, the old file stays. No temporary file is left.
Status write_file_atomic(const std::string& path, std::string_view content);
// The same for content that memory need not hold: `write` calls `append` for one piece after the other. An error that
// it returns is this function's, and the old file stays. `path` must not be a pipe or a device.
using AppendPiece = std::function<Status(std::string_view piece)>;
Status write_file_atomic(const std::string& path,
                         const std::function<Status(const AppendPiece& append)>& write);

bool file_exists(const std::string& path);
// The paths of the files whose names end in one of `endings` (".json"), sorted; with `below` those in its folders, too.
Result<std::vector<std::string>> files_in(const std::string& folder,
                                          std::span<const std::string_view> endings, bool below = false);
// The first bytes of a regular file, at most so many; empty: it is none, or cannot be read.
std::string file_head(const std::string& path, size_t most);
// Of a short file of the system, such as in /sys, without the newline; empty: it does not exist.
std::string first_line(const std::string& path);

}  // namespace heddle
