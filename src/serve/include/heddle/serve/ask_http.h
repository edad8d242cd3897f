// One request to an HTTP server, for verbs and tests.
#pragma once

#include <string>

#include "heddle/base/status.h"
#include "heddle/serve/load.h"

namespace heddle {

struct HttpAnswer {
  int status = 0;
  std::string body;
};
// Waits at most `seconds`. Errors: no server there, no answer in time.
Result<HttpAnswer> ask_http(const LoadTarget& target, const std::string& method, const std::string& path,
                            const std::string& body, double seconds);

}  // namespace heddle
