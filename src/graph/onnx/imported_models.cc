#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/graph/model_content.h"
#include "import_record.h"

namespace heddle {
namespace {

struct Imports {
  std::mutex mutex;
  std::map<uint64_t, std::string> digests;
  std::string folder;
};

Imports& imports() {
  static Imports instance;
  return instance;
}

// The marker file of an import; empty when there is no folder.
std::string marker(uint64_t key) {
  const std::lock_guard lock(imports().mutex);
  return imports().folder.empty() ? "" : imports().folder + "/" + hex64(key);
}

// Without HOME the cache lies in the folder of temporary files, where others could make it first.
bool is_own_folder(const std::filesystem::path& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 && (info.st_uid == ::geteuid() || info.st_uid == 0) &&
         (info.st_mode & S_IWOTH) == 0;
}

// The digest in a marker file; empty if there is none. Markers of earlier releases are empty.
std::string marked(const std::string& path) {
  constexpr int64_t kMostBytes = 256;
  if (path.empty() || !is_own_folder(std::filesystem::path(path).parent_path())) return "";
  auto text = read_file(path, kMostBytes);
  return text.ok() ? std::move(*text) : "";
}

std::set<std::string> noted_imports(uint64_t key) {
  std::set<std::string> noted = {marked(marker(key))};
  {
    const std::lock_guard lock(imports().mutex);
    if (const auto it = imports().digests.find(key); it != imports().digests.end()) noted.insert(it->second);
  }
  noted.erase("");
  return noted;
}

// Replaces what was noted under the key.
void note_import(uint64_t key, const std::string& digest) {
  {
    const std::lock_guard lock(imports().mutex);
    imports().digests[key] = digest;
  }
  const std::string path = marker(key);
  if (path.empty() || marked(path) == digest) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  // If writing fails, the next process tries the model again: slower, otherwise harmless.
  (void)write_file_atomic(path, digest);
}

std::string kind_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

}  // namespace

void keep_imports_in(const std::string& folder) {
  const std::lock_guard lock(imports().mutex);
  imports().folder = folder;
  imports().digests.clear();
}

std::string files_state(std::span<const std::string> paths) {
  std::string text;
  for (const auto& path : paths) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return "";
    text += fmt::format("{} {} {}", info.st_dev, info.st_ino, info.st_size);
    for (const auto& time : {info.st_mtim, info.st_ctim})
      text += fmt::format(" {}.{:09}", time.tv_sec, time.tv_nsec);
    text += '\n';
  }
  return text;
}

namespace internal {

ImportRecord::ImportRecord(const ImportInputs& inputs, const ImportOptions& options)
    : inputs_(inputs),
      recipe_(import_recipe(kind_of(inputs.path), options)),
      key_(Hasher().text(recipe_).number(inputs.file_hash).value()) {}

bool ImportRecord::has() {
  if (!inputs_.recorded) return false;
  const auto noted = noted_imports(key_);
  if (noted.empty()) return false;
  compute();
  return noted.contains(digest_);
}

void ImportRecord::start() {
  if (!inputs_.recorded || !digest_.empty()) return;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { compute(stop); });
  } catch (const std::system_error&) {
    compute();
  }
}

void ImportRecord::join() {
  if (thread_.joinable()) thread_.join();
}
void ImportRecord::note() {
  join();
  // Files that changed since the trial may not be those that were tried.
  if (digest_.empty() || !inputs_.file.is_still(inputs_.path) || files_state(inputs_.files) != inputs_.state)
    return;
  note_import(key_, digest_);
}

void ImportRecord::compute(const std::stop_token& stop) {
  auto digest = import_digest(recipe_, inputs_.file.bytes(), inputs_.others, stop);
  if (digest.ok()) digest_ = std::move(*digest);
}

}  // namespace internal
}  // namespace heddle
