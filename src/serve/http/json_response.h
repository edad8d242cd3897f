// JSON as an answer's body.
#pragma once

#include "heddle/base/json.h"
#include "heddle/serve/http_message.h"

namespace heddle {

// Text that is not UTF-8 is replaced: names come from files and from the network.
inline HttpResponse json_response(const Json& json) {
  HttpResponse response;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

}  // namespace heddle
