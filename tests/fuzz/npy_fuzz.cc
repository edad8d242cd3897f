// Any bytes as an .npy file and as a picture: refused with a reason, or read, written and read again to the
// same.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "heddle/runtime/image.h"
#include "run/npy.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto picture = heddle::parse_image_ppm(content, {1, 3, 4, 5}, {.max_pixels = 1 << 16});
  require(picture.ok() || !picture.error().to_string().empty());
  const auto tensor = heddle::parse_npy(content, {.max_bytes = 1 << 20});
  if (!tensor.ok()) {
    require(!tensor.error().to_string().empty());
    return 0;
  }
  require(tensor->bytes <= static_cast<int64_t>(size));
  const auto text = heddle::npy_text(tensor->view());
  require(text.ok());
  const auto again = heddle::parse_npy(*text);
  require(again.ok() && again->dtype == tensor->dtype && again->shape == tensor->shape &&
          again->bytes == tensor->bytes);
  require(std::memcmp(again->data.get(), tensor->data.get(), static_cast<size_t>(tensor->bytes)) == 0);
  return 0;
}
