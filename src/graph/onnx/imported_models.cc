// Record of models imported before: these need no trial in a separate process.
#include <bit>
#include <filesystem>
#include <mutex>
#include <openvino/core/version.hpp>
#include <set>
#include <string>

#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/graph/model.h"
#include "heddle/graph/model_content.h"
#include "model_impl.h"

namespace heddle {
namespace {

struct Imports {
  std::mutex mutex;
  std::set<uint64_t> keys;
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

}  // namespace

void keep_imports_in(const std::string& folder) {
  const std::lock_guard lock(imports().mutex);
  imports().folder = folder;
}

namespace internal {

uint64_t import_key(uint64_t file_hash, const ImportOptions& options) {
  Hasher hasher;
  // Increase this when models are passed to OpenVINO in a different way.
  constexpr uint64_t kImporter = 1;
  hasher.number(kImporter).number(file_hash).text(ov::get_openvino_version().buildNumber);
  for (const auto& [name, shape] : options.shapes) {
    hasher.text(name).number(shape.size());
    for (const int64_t d : shape) hasher.number(static_cast<uint64_t>(d));
  }
  for (const auto& [name, values] : options.values) {
    hasher.text(name).number(values.size());
    for (const double v : values) hasher.number(std::bit_cast<uint64_t>(v));
  }
  hasher.number(options.batch ? static_cast<uint64_t>(*options.batch) + 1 : 0);
  hasher.number(static_cast<uint64_t>(options.split_bytes));
  return hasher.value();
}

bool was_imported(uint64_t key) {
  {
    const std::lock_guard lock(imports().mutex);
    if (imports().keys.contains(key)) return true;
  }
  const std::string path = marker(key);
  std::error_code error;
  return !path.empty() && std::filesystem::is_regular_file(path, error);
}

void note_imported(uint64_t key) {
  {
    const std::lock_guard lock(imports().mutex);
    if (!imports().keys.insert(key).second) return;
  }
  const std::string path = marker(key);
  std::error_code error;
  if (path.empty() || std::filesystem::exists(path, error)) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  // If writing fails, the next process tries the model again: slower, otherwise harmless.
  (void)write_file_atomic(path, "");
}

}  // namespace internal
}  // namespace heddle
