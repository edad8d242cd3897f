// Faster imports: content hashes, a record of earlier imports, and weights that stay in the mapped file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"

namespace heddle {

struct ModelContent {
  uint64_t hash = 0;               // equals Model::file_hash()
  std::vector<std::string> files;  // paths: the model's, then others that have parts of it, such as weights
  bool all_files = true;           // these are all: of TensorFlow's only the first is known
  std::string state;               // files_state() before they were read
  bool one_file() const { return files.size() == 1 && all_files; }
};
// Inode, size and times of the files: the same as long as nothing is written to them. Empty: one cannot be examined.
std::string files_state(std::span<const std::string> paths);
// Checks the file's structure. O(size of the files).
Result<ModelContent> model_content(const std::string& path, int64_t max_file_bytes = int64_t{8} << 30);

// OpenVINO's importer is native code that parses untrusted data, so Model::load() first tries an import in a
// separate process. A model that this process imported before, with the same options and release, is not
// tried again if the SHA-256 of all that the import reads is the same. After this call the record is shared by
// all processes that name the same folder, and begins with what the folder holds (one file per import). Who can
// write to the folder can name models that are not tried. The folder is created when needed; if it is not
// writable, models are still tried. Thread-safe.
void keep_imports_in(const std::string& folder);

// Loads the library behind Model::load() for .onnx files, some milliseconds. The dynamic linker loads one
// library at a time, so an import that begins beside the loading of a larger one (a device's) would wait for
// that; after this call it does not. Never needed otherwise. Thread-safe; errors are the import's.
void prepare_import();

// Whether an error of Model::load() says nothing of the model, which was not tried: it was cancelled, or a file or
// process that it needs was not there.
bool is_untried(const Error& error);

}  // namespace heddle
