#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "heddle/base/numbers.h"
#include "shared_store.h"

namespace heddle {
namespace {

constexpr int64_t kMostEntryBytes = int64_t{64} << 20;

constexpr uint64_t kKept = 8;  // revisions of an entry, for readers that have just listed them

// Revision n of an entry is the file KEY.n, and the newest counts. Whoever first puts the file of the next revision
// there has changed the entry, so no server waits for another one, which may stand still. A file's first line is its
// revision, the rest is the value.
class FolderStore final : public SharedStore {
 public:
  FolderStore(FileCalls& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  Result<Entry> get(const std::string& key) override {
    constexpr int kMostTries = 100;  // others change the entry between list and read
    for (int i = 0; i < kMostTries; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const auto names, files_.list(folder_));
      const auto there = revisions(names, key);
      // Servers of before revisions had one file for each entry.
      const std::string path = folder_ + "/" + (there.empty() ? key : there.rbegin()->second);
      auto read = files_.read(path, kMostEntryBytes);
      if (!read.ok() && read.error().code() == Code::kNotFound) {
        if (there.empty()) return Entry{};
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(const std::string text, std::move(read));
      const size_t end = text.find('\n');
      const auto revision = parse_number<uint64_t>(text.substr(0, std::min(end, text.size())));
      // After the greatest number there is no next one.
      if (end == std::string::npos || !revision || *revision == 0 || *revision == UINT64_MAX ||
          (!there.empty() && *revision != there.rbegin()->first))
        return invalid_input(path + ": this is no entry of a server's state; remove the file to begin anew");
      return Entry{text.substr(end + 1), *revision};
    }
    return io_error(folder_ + ": entry '" + key + "' changes too often");
  }

  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    const uint64_t next = revision + 1;
    const std::string path = folder_ + "/" + key + "." + std::to_string(next);
    HEDDLE_ASSIGN_OR_RETURN(const bool first, put_file(files_, path, std::to_string(next) + "\n" + value));
    if (!first) return std::optional<uint64_t>();
    HEDDLE_ASSIGN_OR_RETURN(const auto names, files_.list(folder_));
    const auto there = revisions(names, key);
    // This server stood still: the file of its revision has been there before and is gone.
    if (there.empty() || there.rbegin()->first != next) {
      files_.remove(path);
      return std::optional<uint64_t>();
    }
    std::string rest;
    for (const auto& name : names)  // what crashed servers have left, too
      if (const auto n = number_in(name, key, rest); n && *n + kKept <= next)
        files_.remove(folder_ + "/" + name);
    return std::optional(next);
  }

 private:
  // The number behind "KEY.", with what follows in `rest`.
  static std::optional<uint64_t> number_in(const std::string& name, const std::string& key,
                                           std::string& rest) {
    if (!name.starts_with(key + ".")) return std::nullopt;
    const size_t from = key.size() + 1, to = std::min(name.find('.', from), name.size());
    rest = name.substr(to);
    return parse_number<uint64_t>(name.substr(from, to - from));
  }
  // Their files.
  static std::map<uint64_t, std::string> revisions(const std::vector<std::string>& names,
                                                   const std::string& key) {
    std::map<uint64_t, std::string> found;
    std::string rest;
    for (const auto& name : names)
      if (const auto n = number_in(name, key, rest); n && *n > 0 && rest.empty()) found[*n] = name;
    return found;
  }

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
