#include "grpc_load_channel.h"

namespace heddle {

std::shared_ptr<grpc::Channel> load_channel(const LoadTarget& target, int number) {
  const bool bare_v6 = target.host.find(':') != std::string::npos;
  const auto address = (bare_v6 ? "[" + target.host + "]" : target.host) + ":" + std::to_string(target.port);
  grpc::ChannelArguments arguments;
  arguments.SetInt("heddle.channel", number);  // else channels of one address share a connection
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  if (!target.tls) return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = target.grpc_trusted;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(ssl), arguments);
}

void authorize(const LoadTarget& target, grpc::ClientContext& context) {
  if (!target.bearer_token.empty()) context.AddMetadata("authorization", "Bearer " + target.bearer_token);
}

}  // namespace heddle
