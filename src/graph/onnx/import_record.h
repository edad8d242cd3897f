// The record of earlier imports: a model in it needs no trial in a child process. It knows models by the SHA-256 of all
// that an import reads. Unlike Model::file_hash(), no other model can be made that has the same.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "heddle/base/mapped_file.h"
#include "heddle/base/status.h"
#include "heddle/graph/model.h"

namespace heddle::internal {

// The options that change an import, the file's kind and the importer's release, as bytes: different imports never
// have the same text.
std::string import_recipe(const std::string& extension, const ImportOptions& options);

// SHA-256 over a file's length and the SHA-256 of each of its chunks of 4 MiB, which several threads compute.
// Without meaning if a stop is requested.
std::string tree_digest(std::string_view bytes, const std::stop_token& stop = {});

// 64 hexadecimal digits over the recipe, the model's file and its other files. `others`: path by the name that the
// model has for the file; one file under many names is read once. Fails if a file cannot be read, if a stop is
// requested, or if the other files have more than 64 GiB.
Result<std::string> import_digest(const std::string& recipe, std::string_view file,
                                  const std::map<std::string, std::string>& others,
                                  const std::stop_token& stop = {});

// What one import reads.
struct ImportInputs {
  const std::string& path;
  const MappedFile& file;                            // of `path`
  uint64_t file_hash = 0;                            // of the model, as Model::file_hash()
  const std::map<std::string, std::string>& others;  // as of import_digest()
  const std::vector<std::string>& files;             // paths of all, the model's first
  const std::string& state;                          // files_state() of these before they were read
  bool recorded = true;                              // false: always tried, never noted
};

// The record's entry for one import. It has a key, which is cheap and may be the same for different models, and
// import_digest(), which is computed only if it is needed. `inputs` outlives it. Not thread-safe.
class ImportRecord {
 public:
  ImportRecord(const ImportInputs& inputs, const ImportOptions& options);
  ImportRecord(const ImportRecord&) = delete;
  ImportRecord& operator=(const ImportRecord&) = delete;

  // True if this process, or one that shares the folder of imports, noted an import of the same digest.
  bool has();
  // Computes the digest for note() on another thread, during the trial. Stopped by the destructor.
  void start();
  // Waits until that thread has ended.
  void join();
  // Notes the import, unless a file has changed.
  void note();

 private:
  void compute(const std::stop_token& stop = {});
  const ImportInputs inputs_;
  const std::string recipe_;
  const uint64_t key_;
  std::string digest_;  // empty: not computed, or not possible
  std::jthread thread_;
};

}  // namespace heddle::internal
