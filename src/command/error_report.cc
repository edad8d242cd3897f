#include "error_report.h"

#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/command/command.h"
#include "heddle/runtime/transport.h"

namespace heddle {

bool is_silent() { return rank_environment().rank > 0; }

int report_error(const Error& error, bool json) {
  if (is_silent()) return exit_status(error.code());
  if (json) {
    const Json j = {{"error", {{"code", code_name(error.code())}, {"message", error.to_string()}}}};
    std::printf("%s\n", json_text(j, 1).c_str());
  }
  print(stderr, "{} {}\n", painted_error(Ink::kRed, "heddle:"), error.to_string());
  return exit_status(error.code());
}

}  // namespace heddle
