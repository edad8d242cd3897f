#include "heddle/base/json.h"
#include "heddle/base/spelling.h"

namespace heddle {

Status JsonCursor::check_keys(std::initializer_list<std::string_view> allowed) const {
  if (!value_->is_object()) return error("expected an object");
  for (auto it = value_->begin(); it != value_->end(); ++it) {
    bool known = false;
    for (const auto& name : allowed) known |= name == it.key();
    if (known) continue;
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    return error("unknown key \"" + it.key().substr(0, 60) + "\"" + did_you_mean(it.key(), names) + "; known are " + join_names(names, 30));
  }
  return {};
}

}  // namespace heddle
