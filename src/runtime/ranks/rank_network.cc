#include "heddle/runtime/rank_network.h"

#include <algorithm>
#include <limits>

namespace heddle {
namespace {

// A rank's link to the network.
struct Uplink {
  double bytes_per_s = 0;
  double latency_us = std::numeric_limits<double>::max();
  bool half_duplex = true;
};

// A link's bandwidth is that of the rank's fastest pair, its latency half of the rank's lowest.
std::vector<Uplink> uplinks_of(const RankLinks& links) {
  std::vector<Uplink> uplinks(links.ports.size());
  for (const RankLink& link : links.pairs) {
    for (const int rank : {link.a, link.b}) {
      Uplink& uplink = uplinks[static_cast<size_t>(rank)];
      uplink.bytes_per_s = std::max(uplink.bytes_per_s, link.bytes_per_s);
      uplink.latency_us = std::min(uplink.latency_us, link.latency_us / 2);
      uplink.half_duplex = uplink.half_duplex && link.half_duplex();
    }
  }
  return uplinks;
}

Json link_json(const std::string& from, const std::string& to, double bytes_per_s, double latency_us,
               bool half) {
  return {{"name", from + "-" + to},
          {"from", from},
          {"to", to},
          {"bytes_per_s", bytes_per_s},
          {"latency_us", latency_us},
          {"duplex", half ? "half" : "full"}};
}

}  // namespace

bool shares_ports(const RankLinks& links) {
  return std::any_of(links.ports.begin(), links.ports.end(), [](const RankPort& p) { return p.shared(); });
}

bool describes_ports(const RankLinks& links) {
  if (!shares_ports(links)) return false;
  const auto uplinks = uplinks_of(links);
  return std::all_of(links.pairs.begin(), links.pairs.end(), [&](const RankLink& link) {
    const double least = std::min(uplinks[static_cast<size_t>(link.a)].bytes_per_s,
                                  uplinks[static_cast<size_t>(link.b)].bytes_per_s);
    return link.bytes_per_s > 0.75 * least;
  });
}

std::vector<Json> rank_links_json(const RankLinks& links, const std::vector<std::string>& memory) {
  std::vector<Json> list;
  if (describes_ports(links)) {
    const auto uplinks = uplinks_of(links);
    for (size_t r = 0; r < uplinks.size(); ++r)
      list.push_back(link_json(memory[r], kNetwork, uplinks[r].bytes_per_s, uplinks[r].latency_us,
                               uplinks[r].half_duplex));
    return list;
  }
  for (const RankLink& link : links.pairs) {
    list.push_back(link_json(memory[static_cast<size_t>(link.a)], memory[static_cast<size_t>(link.b)],
                             link.bytes_per_s, link.latency_us, link.half_duplex()));
  }
  return list;
}

}  // namespace heddle
