#include "load_addresses.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "heddle/serve/live_plane.h"

namespace heddle {
namespace {

constexpr double kConnectSeconds = 2;
constexpr TimeNs kSearchAgain = kNsPerSecond / 2;

bool same(const SocketAddress& a, const SocketAddress& b) {
  return a.size == b.size && std::memcmp(&a.bytes, &b.bytes, a.size) == 0;
}

}  // namespace

ServerAddresses::ServerAddresses(Find find)
    : find_([find = std::move(find)]() -> Result<std::vector<SocketAddress>> {
        auto found = find();
        if (!found.ok()) return found;
        const auto best = static_cast<ptrdiff_t>(first_that_connects(*found, kConnectSeconds));
        std::rotate(found->begin(), found->begin() + best, found->end());
        return found;
      }),
      search_(std::async(std::launch::async, find_)) {}

Result<SocketAddress> ServerAddresses::current() {
  take();
  if (!all_.empty()) return all_[at_];
  search();
  return why_;
}

void ServerAddresses::refused(const SocketAddress& address) {
  if (!all_.empty() && same(address, all_[at_])) at_ = (at_ + 1) % all_.size();
  search();
}

void ServerAddresses::search() {
  take();
  if (search_.valid() || live_now() - begun_ < kSearchAgain) return;
  begun_ = live_now();
  try {
    search_ = std::async(std::launch::async, find_);
  } catch (const std::system_error&) {
    // There is no thread for it now; those that are known stay.
  }
}

void ServerAddresses::take() {
  if (!search_.valid() || search_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  auto found = search_.get();
  if (found.ok()) {
    all_ = std::move(*found);
    at_ = 0;
  } else {
    why_ = found.error();
  }
}

}  // namespace heddle
