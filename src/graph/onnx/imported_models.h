// Which models were imported before: they need no trial in a process of its own.
#pragma once

#include <cstdint>

namespace heddle {
struct ImportOptions;
}

namespace heddle::internal {

// Names content, options and the importer's release; the same names, the same import.
uint64_t import_key(uint64_t file_hash, const ImportOptions& options);

// By this process, or by one that shares the folder of imports. Thread-safe.
bool was_imported(uint64_t key);
void note_imported(uint64_t key);

}  // namespace heddle::internal
