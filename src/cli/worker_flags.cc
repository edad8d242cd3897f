#include "worker_flags.h"

#include "command.h"
#include "heddle/fleet/fleet.h"

namespace heddle::cli {

Result<std::map<std::string, int64_t>> device_counts(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> counts;
  for (const auto& list : texts)
    for (const auto& text : split_list(list)) {
      const auto eq = text.rfind('=');
      const auto digits = eq == std::string::npos ? "" : text.substr(eq + 1);
      const bool number = !digits.empty() && digits.size() <= 7 &&
                          digits.find_first_not_of("0123456789") == std::string::npos;
      if (!number || eq == 0 || std::stoll(digits) < 1)
        return Error(Code::kInvalidInput,
                     "--devices " + text + ": expected CLASS=N with N from 1, such as L4=2");
      if (!counts.emplace(text.substr(0, eq), std::stoll(digits)).second)
        return Error(Code::kInvalidInput, "--devices " + text + ": that class was given twice");
    }
  if (counts.empty())
    return Error(Code::kInvalidInput, "a worker needs --devices CLASS=N, its devices of the fleet's classes");
  return counts;
}

}  // namespace heddle::cli
