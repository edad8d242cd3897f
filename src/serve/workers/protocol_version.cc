#include "protocol_version.h"

#include "heddle/base/log.h"

namespace heddle {

bool works_with(uint32_t theirs, uint32_t ours) {
  return theirs != 0 && (theirs < ours ? ours - theirs : theirs - ours) <= 1;
}

std::string version_refusal(const std::string& they, uint32_t theirs, const std::string& we, uint32_t ours) {
  const std::string known = theirs == 0 ? they + " has no version of the protocol between server and workers"
                                        : they + " has version " + std::to_string(theirs) +
                                              " of the protocol between server and workers";
  return known + ", " + we + " has version " + std::to_string(ours) + "; upgrade " +
         (theirs < ours ? they : we);
}

void RareErrors::log(const std::string& text) {
  constexpr size_t kMostTexts = 16;
  {
    const std::lock_guard lock(mutex_);
    if (logged_.size() >= kMostTexts || !logged_.insert(text).second) return;
  }
  log_line(LogLevel::kError, text);
}

}  // namespace heddle
