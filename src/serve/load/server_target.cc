#include "heddle/serve/server_target.h"

#include "heddle/base/file.h"
#include "heddle/serve/http_message.h"
#include "heddle/serve/worker_security.h"

namespace heddle {

Result<LoadTarget> server_target(const std::string& url, const std::string& token_file,
                                 const std::string& ca_file, bool also_grpc) {
  std::string text = url;
  LoadTarget target;
  target.grpc = text.starts_with("grpc://") || text.starts_with("grpcs://");
  const bool tls = text.starts_with("https://") || text.starts_with("grpcs://");
  if (target.grpc && !also_grpc)
    return invalid_input(url + ": this request goes by HTTP; expected http://HOST:PORT");
  if (!tls && !ca_file.empty())
    return invalid_input("--ca needs an address that begins with https://" +
                         std::string(also_grpc ? " or grpcs://" : "") + "; this is " + url);
  if (const auto scheme = text.find("://"); tls || target.grpc || text.starts_with("http://"))
    text.erase(0, scheme + 3);
  while (text.ends_with('/')) text.pop_back();
  const auto colon = text.rfind(':');
  const auto port = colon == std::string::npos ? 0 : parse_digits(text.substr(colon + 1)).value_or(0);
  if (port < 1 || port > 65535 || colon == 0)
    return invalid_input(url + ": expected http://HOST:PORT" + (also_grpc ? " or grpc://HOST:PORT" : "") +
                         ", as `heddle serve` prints it");
  target.port = static_cast<int>(port);
  target.host = text.substr(0, colon);
  if (target.host.starts_with('[') && target.host.ends_with(']'))
    target.host = target.host.substr(1, target.host.size() - 2);
  if (tls) {
    HEDDLE_ASSIGN_OR_RETURN(target.tls, TlsContext::client(ca_file));
    if (target.grpc && !ca_file.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(target.grpc_trusted, read_file(ca_file));
    }
  }
  if (!token_file.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(target.bearer_token, read_token(token_file, 0));
  }
  return target;
}

}  // namespace heddle
