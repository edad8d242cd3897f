// Record of models imported before: these need no trial in a separate process.
#pragma once

#include <cstdint>

namespace heddle {
struct ImportOptions;
}

namespace heddle::internal {

// Key of file content, options and the importer's release. Equal keys mean equal imports.
uint64_t import_key(uint64_t file_hash, const ImportOptions& options);

// Imported by this process, or by one that shares the folder of imports. Thread-safe.
bool was_imported(uint64_t key);
void note_imported(uint64_t key);

}  // namespace heddle::internal
