// Importing a model that was imported before: what its file holds, and the faster ways.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"

namespace heddle {

struct ModelContent {
  uint64_t hash = 0;      // what Model::file_hash() would be
  bool one_file = false;  // nothing of it, such as weights, is in another file
};
// The file's structure is checked. O(size of the file).
Result<ModelContent> model_content(const std::string& path, int64_t max_file_bytes = int64_t{8} << 30);

// Model::load() tries a model in a process of its own before it imports it, for OpenVINO's importer is native
// code over untrusted data. What was imported once, with the same options by the same release, is not tried
// again by this process, nor, after this call, by any that keeps its imports in the same folder (one empty
// file each). The folder is made when it is needed; where it cannot be written, models are tried.
// Thread-safe.
void keep_imports_in(const std::string& folder);

// Loads the library behind Model::load() for .onnx files, some milliseconds. The dynamic linker loads one
// library at a time, so an import that begins beside the loading of a larger one (a device's) would wait for
// that; after this call it does not. Never needed otherwise. Thread-safe; errors are the import's.
void prepare_import();

}  // namespace heddle
