#include "cuda_name.h"

#include <charconv>
#include <string>

namespace heddle {
namespace {

constexpr int kMostParts = 64;
constexpr int kMostDevices = 1024;

// Takes a number off the front.
bool take_number(std::string_view& text, int most, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > most || text.starts_with('-')) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

}  // namespace

Result<CudaName> parse_cuda_name(std::string_view text) {
  CudaName name;
  std::string_view rest = text;
  bool good = take(rest, "cuda:") && take_number(rest, kMostDevices, name.index);
  if (good && !rest.empty()) {
    good = take(rest, "/") && take_number(rest, kMostParts, name.first) && take(rest, "-") &&
           take_number(rest, kMostParts, name.last) && take(rest, "/") &&
           take_number(rest, kMostParts, name.of) && rest.empty() && name.first < name.last &&
           name.last <= name.of;
  }
  if (good) return name;
  return Error(Code::kInvalidInput,
               "'" + std::string(text) +
                   "' is no CUDA device; expected 'cuda:0', or 'cuda:0/0-2/8' for parts 0 "
                   "and 1 of 8");
}

}  // namespace heddle
