#include "accelerator_name.h"

#include <charconv>
#include <string>

namespace heddle {
namespace {

constexpr int kMostParts = 64;
constexpr int kMostDevices = 1024;

// Removes a number from the front.
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

Result<AcceleratorName> parse_accelerator_name(std::string_view text) {
  AcceleratorName name;
  std::string_view rest = text;
  name.cuda = take(rest, "cuda:");
  bool good = name.cuda ? take_number(rest, kMostDevices, name.index) : take(rest, "cpu") || rest.empty();
  if (good && !rest.empty()) {
    good = take(rest, "/") && take_number(rest, kMostParts, name.first) && take(rest, "-") &&
           take_number(rest, kMostParts, name.last) && take(rest, "/") &&
           take_number(rest, kMostParts, name.of) && rest.empty() && name.first < name.last &&
           name.last <= name.of;
  }
  if (good) return name;
  return invalid_input(
      "'" + std::string(text) +
      "' is no accelerator of libtorch; expected 'cuda:0', or 'cuda:0/0-2/8' for parts 0 and 1 of "
      "8 ('cpu' and 'cpu/0-2/8' for one that is made up on the host)");
}

std::string accelerator_name(const AcceleratorName& name) {
  std::string text = name.cuda ? "cuda:" + std::to_string(name.index) : "cpu";
  if (name.of > 0) {
    text +=
        "/" + std::to_string(name.first) + "-" + std::to_string(name.last) + "/" + std::to_string(name.of);
  }
  return text;
}

int most_parts(const AcceleratorName& name) { return name.of == 0 ? kMostParts : kMostParts / name.of; }

AcceleratorName part_of(const AcceleratorName& name, int index, int of) {
  if (of == 1) return name;
  AcceleratorName part = name;
  const int width = name.of == 0 ? 1 : name.last - name.first;
  part.first = name.first * of + index * width;
  part.last = part.first + width;
  part.of = (name.of == 0 ? 1 : name.of) * of;
  return part;
}

}  // namespace heddle
