// Any bytes as a profile store's file: opening and reading it gives records that a measurement can have, or
// an error.
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "heddle/cost/profile_store.h"

namespace {

const std::string& file() {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("heddle_profile_store_fuzz_" + std::to_string(getpid())))
          .string();
  return path;
}

void write_file(const uint8_t* data, size_t size) {
  for (const char* suffix : {"-wal", "-shm", "-journal"}) unlink((file() + suffix).c_str());
  FILE* f = std::fopen(file().c_str(), "wb");
  if (f == nullptr || std::fwrite(data, 1, size, f) != size) std::abort();
  std::fclose(f);
}

void read_all() {
  const auto store = heddle::ProfileStore::open(file(), "machine");
  if (!store.ok()) return;
  const auto records = (*store)->all();
  if (!records.ok()) return;
  for (const auto& r : *records) {
    if (!std::isfinite(r.median_us) || r.median_us < 0 || r.key.batch < 1) std::abort();
    if (!(*store)->find(r.key).ok()) return;
  }
  heddle::ProfileRecord record;
  record.key.target = "t";
  record.runs = 1;
  (void)(*store)->put(record).ok();  // may fail, on a damaged page
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 16)) return 0;
  write_file(data, size);
  read_all();
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink((file() + suffix).c_str());
  return 0;
}
