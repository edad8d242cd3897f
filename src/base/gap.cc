#include "heddle/base/gap.h"

namespace heddle {

std::string bound_text(const std::string& bound, const std::string& times) {
  return "bound " + bound + " for " + times;
}

std::string bound_note(const std::string& times) { return "Bound and gap are for " + times + ".\n"; }

}  // namespace heddle
