// The Open Inference Protocol (KServe v2) over HTTP, with Triton's extensions for statistics, repository and
// configuration; /metrics; the status that pages and programs read.
#pragma once

#include <memory>
#include <string_view>

#include "heddle/serve/http_server.h"
#include "heddle/serve/infer_service.h"

namespace heddle {

// Answers one request; infer() answers later. The service must outlive all replies.
void answer_rest(InferService& service, const HttpHead& head, const HttpBody& body, const HttpReply& reply);
// A server on any free port of this machine that answers so.
Result<std::unique_ptr<HttpServer>> start_rest(InferService& service);

// v2/health/live and v2/health/ready, what supervisors ask, and the page at '/', which asks for the token
// itself: without a token.
bool is_open_path(std::string_view path);

}  // namespace heddle
