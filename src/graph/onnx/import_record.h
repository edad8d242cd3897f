// The record of earlier imports: a model in it needs no trial in a child process.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "heddle/base/mapped_file.h"
#include "heddle/graph/model.h"

namespace heddle::internal {

// What one import reads.
struct ImportInputs {
  const std::string& path;
  const MappedFile& file;                            // of `path`
  uint64_t file_hash = 0;                            // of its bytes
  const std::map<std::string, std::string>& others;  // as of import_digest()
  bool recorded = true;                              // false: always tried, never noted
};

// The record's entry for one import. It has a key, which is cheap and may be the same for different models, and
// import_digest(), which is computed only if it is needed. `inputs` outlives it. Not thread-safe.
class ImportRecord {
 public:
  // Notes the state of the files. They must not be read for the import before.
  ImportRecord(const ImportInputs& inputs, const ImportOptions& options);
  ImportRecord(const ImportRecord&) = delete;
  ImportRecord& operator=(const ImportRecord&) = delete;

  // True if this process, or one that shares the folder of imports, noted an import of the same digest.
  bool has();
  // Computes the digest for note() on another thread, during the trial. Stopped by the destructor.
  void start();
  // Notes the import, unless a file has changed.
  void note();

 private:
  void compute(const std::stop_token& stop = {});
  const ImportInputs inputs_;
  const std::string recipe_, state_;
  const uint64_t key_;
  std::string digest_;  // empty: not computed, or not possible
  std::jthread thread_;
};

}  // namespace heddle::internal
