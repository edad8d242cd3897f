// A client's connection for the load generator: one request at a time, never blocking.
#pragma once

#include <sys/socket.h>

#include <span>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/fleet/data_plane_time.h"
#include "heddle/serve/http_message.h"
#include "heddle/serve/load.h"
#include "http/socket_stream.h"

namespace heddle {

struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};
// All addresses of the target's host. Waits for a server of names, perhaps for seconds. Errors: an unknown host.
Result<std::vector<SocketAddress>> find_addresses(const LoadTarget& target);
// The first that takes a connection, as an index. 0 if there is no other, or if none does within `seconds`. Waits.
size_t first_that_connects(std::span<const SocketAddress> addresses, double seconds);
// Both. Waits.
Result<SocketAddress> find_address(const LoadTarget& target, double seconds);

class LoadConnection {
 public:
  // Begins to connect. Errors: no connection can be made there; the process has no socket left.
  Status open(const LoadTarget& target, const SocketAddress& address);
  // Has open() failed because as many files are open as may be?
  bool lacks_files() const { return lacks_files_; }
  int fd() const { return socket_.fd(); }
  // Why encryption failed; empty: it did not.
  const std::string& why() const { return socket_.why(); }

  // The tensors must outlive the request's sending.
  void send(std::string head, std::string_view tensors);
  enum class Step { kWantsRead, kWantsWrite, kDone, kBroken };
  // Goes on as far as it can without waiting; kDone: answer() is whole.
  Step advance();

  // Was there a server that took a part of the request?
  bool sent_any() const { return sent_ > 0; }
  // Has anything of its answer come?
  bool received_any() const { return has_head_ || !in_.empty(); }
  int status() const { return head_.status; }
  bool keep_alive() const { return head_.keep_alive; }
  const HttpHeaders& headers() const { return head_.headers; }
  const std::string& body() const { return in_; }

 private:
  // Whether in_ has the whole body, which it then is.
  bool is_whole(bool ended);

  SocketStream socket_;
  bool lacks_files_ = false;
  std::string out_;
  std::string_view tensors_;
  size_t sent_ = 0;
  std::string in_;
  bool has_head_ = false;
  HttpAnswerHead head_;
};

// What an answer of JSON says is wrong; empty: nothing.
std::string error_text(const Result<Json>& json);

// The head of a request without its empty line's end: method, host, token.
std::string request_head(const LoadTarget& target, const std::string& method, const std::string& path);

}  // namespace heddle
