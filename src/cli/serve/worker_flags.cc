#include "worker_flags.h"

#include <algorithm>

#include "command.h"
#include "heddle/fleet/fleet.h"

namespace heddle::cli {

namespace {

// "cpu0+cpu1"; empty where it is no such list.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  size_t at = 0;
  while (at <= text.size()) {
    const auto end = std::min(text.find('+', at), text.size());
    if (end == at) return {};
    names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace

Result<ClassDevices> class_devices(const std::vector<std::string>& texts) {
  ClassDevices out;
  for (const auto& list : texts)
    for (const auto& text : split_list(list)) {
      const auto eq = text.rfind('=');
      const auto name = text.substr(0, eq), value = eq == std::string::npos ? "" : text.substr(eq + 1);
      const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
      const auto names = number ? std::vector<std::string>() : names_in(value);
      if (name.empty() || (number ? value.size() > 7 || std::stoll(value) < 1 : names.empty()))
        return Error(Code::kInvalidInput, "--devices " + text +
                                              ": expected CLASS=N with N from 1, such as L4=2, or the "
                                              "devices of this host by name, such as fast=cpu0+cpu1");
      const int64_t count = number ? std::stoll(value) : static_cast<int64_t>(names.size());
      if (!out.counts.emplace(name, count).second)
        return Error(Code::kInvalidInput, "--devices " + text + ": that class was given twice");
      if (!number) out.names[name] = names;
    }
  if (out.counts.empty())
    return Error(Code::kInvalidInput, "a worker needs --devices CLASS=N, its devices of the fleet's classes");
  return out;
}

}  // namespace heddle::cli
