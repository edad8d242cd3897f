#include "heddle/base/utc.h"

#include <fmt/format.h>

#include <chrono>
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

std::string utc_now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, ms % 1000);
}

std::optional<int64_t> utc_seconds(const std::string& text) {
  std::tm parts{};
  if (strptime(text.c_str(), kForm, &parts) == nullptr) return std::nullopt;
  return timegm(&parts);
}

}  // namespace heddle
