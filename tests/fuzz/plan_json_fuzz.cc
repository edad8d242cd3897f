// Any bytes: a plan file is read, written, read again alike, and may be checked; or it is an error with a
// message.
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/plan_file.h"
#include "json_mutator.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = heddle::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  const auto file = heddle::plan_from_json(heddle::JsonCursor(*document));
  if (!file.ok()) {
    require(!file.error().to_string().empty());
    return 0;
  }
  (void)heddle::check(file->problem, file->plan, file->predicted, file->bound.us);
  const heddle::Json written = heddle::plan_to_json(*file);
  const auto again = heddle::plan_from_json(heddle::JsonCursor(written));
  require(again.ok() && heddle::plan_to_json(*again) == written);
  return 0;
}
