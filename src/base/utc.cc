#include "heddle/base/utc.h"

#include <ctime>

namespace heddle {
namespace {

constexpr const char* kForm = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, kForm, &parts);
  return text;
}

std::optional<int64_t> utc_seconds(const std::string& text) {
  std::tm parts{};
  if (strptime(text.c_str(), kForm, &parts) == nullptr) return std::nullopt;
  return timegm(&parts);
}

}  // namespace heddle
