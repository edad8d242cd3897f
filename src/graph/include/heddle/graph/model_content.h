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

// From now on Model::load() leaves out its trial in a process of its own for content with this hash: it was
// imported before, as a plan for it proves. That halves the time of an import. Thread-safe.
void remember_imported(uint64_t hash);

// Model::load() that leaves the weights of an .onnx file where they are, in the mapped file, until they are
// used: importing a large model takes a fraction of the time and of the memory. The file must not change
// while the model, what was cut out of it, or what was compiled from that lives; who keeps such parts keeps
// the model. Weights in other files, and those of other formats, are as Model::load() leaves them.
Result<std::shared_ptr<const Model>> load_mapped(const std::string& path, const ImportOptions& options = {});

}  // namespace heddle
