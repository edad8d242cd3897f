// Addresses of servers, as people write them.
#pragma once

#include <string>

#include "heddle/base/status.h"
#include "heddle/serve/load.h"

namespace heddle {

// "http://HOST:PORT", "https://HOST:PORT", "HOST:PORT" or "[::1]:8000"; the token is the file's content, none
// without a file; https trusts the certificates in `ca_file`, the system's without one. `also_grpc`:
// "grpc://HOST:PORT" and "grpcs://HOST:PORT", too, which must be asked by gRPC.
Result<LoadTarget> server_target(const std::string& url, const std::string& token_file,
                                 const std::string& ca_file, bool also_grpc = false);

}  // namespace heddle
