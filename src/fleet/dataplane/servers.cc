#include "servers.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

namespace heddle {
namespace {

struct Server {
  LinkLoad load;
  int64_t room = 0;
  uint32_t number = kUnused;
  static constexpr uint32_t kUnused = 0xffffffff;
};

}  // namespace

std::vector<uint32_t> spread_over_servers(std::span<const LinkLoad> devices, int64_t count,
                                          int64_t per_server) {
  std::vector<size_t> order(devices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const LinkLoad &x = devices[a], &y = devices[b];
    return std::tuple(x.most(), x.up) > std::tuple(y.most(), y.up);
  });
  const int64_t all = (count + per_server - 1) / per_server;
  std::vector<Server> servers(static_cast<size_t>(std::min(all, static_cast<int64_t>(devices.size()))));
  for (size_t s = 0; s < servers.size(); ++s)
    servers[s].room = std::min(per_server, count - static_cast<int64_t>(s) * per_server);
  std::vector<size_t> of(devices.size());
  // A heap of the servers with room, by the load that they would have with one more device like the ones that follow.
  using Next = std::tuple<double, double, size_t>;
  std::vector<Next> heap;
  for (size_t i = 0; i < order.size();) {
    const LinkLoad& own = devices[order[i]];
    const auto next = [&](size_t s) {
      const double up = servers[s].load.up + own.up, down = servers[s].load.down + own.down;
      return Next{std::max(up, down), up + down, s};
    };
    heap.clear();
    for (size_t s = 0; s < servers.size(); ++s)
      if (servers[s].room > 0) heap.push_back(next(s));
    std::ranges::make_heap(heap, std::greater<>());
    for (; i < order.size() && devices[order[i]] == own; ++i) {
      std::ranges::pop_heap(heap, std::greater<>());
      const size_t s = std::get<2>(heap.back());
      heap.pop_back();
      of[order[i]] = s;
      servers[s].load.up += own.up;
      servers[s].load.down += own.down;
      if (--servers[s].room == 0) continue;
      heap.push_back(next(s));
      std::ranges::push_heap(heap, std::greater<>());
    }
  }
  // Numbered in the order of their first devices.
  std::vector<uint32_t> result;
  uint32_t used = 0;
  for (const size_t s : of) {
    if (servers[s].number == Server::kUnused) servers[s].number = used++;
    result.push_back(servers[s].number);
  }
  return result;
}

}  // namespace heddle
