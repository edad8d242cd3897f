#include "grpc_address.h"

#include <cstdlib>

#include "heddle/base/spelling.h"

namespace heddle {

std::string grpc_address(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Status check_grpc_address(const std::string& address) {
  const auto colon = address.rfind(':');
  const auto port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || colon == 0 || std::atoi(port.c_str()) < 1 || std::atoi(port.c_str()) > 65535 ||
      address.find('/') != std::string::npos || address.size() > 300)
    return Error(Code::kInvalidInput, "the address " + quote_text(address) + ": expected HOST:PORT");
  return {};
}

grpc::ChannelArguments quick_reconnects() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // What an attempt may take, on a busy machine too.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // Sessions end with their channel: none is shared with a channel of an earlier session.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return arguments;
}

void ask_silent_callers(grpc::ServerBuilder& builder) {
  constexpr int kSilenceMs = 10'000, kAnswerMs = 10'000;
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kSilenceMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kAnswerMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

bool may_be_cut(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         status.error_code() == grpc::StatusCode::UNAVAILABLE;
}

}  // namespace heddle
