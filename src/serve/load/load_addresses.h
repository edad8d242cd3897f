// The addresses of a server that a load is sent to.
#pragma once

#include <functional>
#include <future>
#include <vector>

#include "heddle/fleet/data_plane_time.h"
#include "load_client.h"

namespace heddle {

// Searched for on another thread: a server of names, or an address where nobody is, may take seconds to answer, and a
// load must not wait for that.
class ServerAddresses {
 public:
  using Find = std::function<Result<std::vector<SocketAddress>>()>;
  // Begins to search.
  explicit ServerAddresses(Find find);

  // Waits until the search is over.
  void wait() const { search_.wait(); }
  // Where to connect now; of a new search, its first address that takes a connection. Errors: the last search's.
  Result<SocketAddress> current();
  // How many there are to step through.
  size_t size() const { return all_.size(); }
  // A connection to this one was refused: the next one is current.
  void refused(const SocketAddress& address);
  // No answer came from the current one: perhaps the host has gone, or has another address now.
  void silent() { search(); }

 private:
  // Again; not while a search is under way, or soon after the last one of these.
  void search();
  void take();

  Find find_;
  std::future<Result<std::vector<SocketAddress>>> search_;  // not valid: it is taken
  TimeNs begun_ = 0;                                        // the last search of search()
  std::vector<SocketAddress> all_;
  size_t at_ = 0;
  Error why_{Code::kIo, "it has no address"};  // where all_ is empty
};

}  // namespace heddle
