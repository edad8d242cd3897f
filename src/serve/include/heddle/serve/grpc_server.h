// The Open Inference Protocol over gRPC, with the same service as HTTP. Calls hold no thread while they wait.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "heddle/base/status.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/rate_limit.h"
#include "heddle/serve/tls.h"

namespace heddle {

struct GrpcServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;                                 // 0: any free one
  size_t max_message_bytes = size_t{64} << 20;  // of one request: RESOURCE_EXHAUSTED
  // Of all calls together, as gRPC's resource quota counts it; and of requests to infer until they are answered, and
  // answers until they are sent: UNAVAILABLE.
  size_t max_memory_bytes = size_t{1} << 30;
  size_t max_streams = 1024;        // calls at once on one connection; others wait there
  std::shared_ptr<RateLimit> rate;  // of ModelInfer: RESOURCE_EXHAUSTED; none: any
  TlsIdentity tls;                  // empty: not encrypted
  std::string bearer_token;         // not empty: calls without the metadata 'authorization: Bearer TOKEN' get
                                    // UNAUTHENTICATED, except ServerLive and ServerReady
};

class GrpcServer {
 public:
  // Listens from here on; the service must outlive the server. Errors: an address that is taken or malformed.
  static Result<std::unique_ptr<GrpcServer>> start(const GrpcServerOptions& options, InferService& service);
  virtual ~GrpcServer() = default;  // stop(0)

  virtual int port() const = 0;
  // Takes no new call; waits up to `seconds` for those that are under way, then cancels them.
  virtual void stop(double seconds) = 0;
};

}  // namespace heddle
