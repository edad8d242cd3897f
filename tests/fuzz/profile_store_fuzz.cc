// Any bytes as a profile store's file: opening and reading it gives records that a measurement can have, or
// an error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "heddle/base/temporary_file.h"
#include "heddle/cost/profile_store.h"
#include "input_file.h"

namespace {

void read_all(const std::string& path) {
  const auto store = heddle::ProfileStore::open(path, "machine");
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
  // SQLite writes three files beside its own.
  const heddle::TemporaryFile file("store"), log("store-wal"), shared("store-shm"), journal("store-journal");
  write_input(file.path(), {reinterpret_cast<const char*>(data), size});
  read_all(file.path());
  return 0;
}
