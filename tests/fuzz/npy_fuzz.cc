// Any bytes as an .npy file and as a picture: refused with a reason, or read.
#include <cstdint>

#include "require.h"
#include "run/tensor_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto picture = heddle::parse_image_ppm(content, {1, 3, 4, 5});
  require(picture.ok() || !picture.error().to_string().empty());
  const auto tensor = heddle::parse_npy(content, 1 << 20);
  if (!tensor.ok()) {
    require(!tensor.error().to_string().empty());
    return 0;
  }
  require(tensor->bytes <= static_cast<int64_t>(size));
  return 0;
}
