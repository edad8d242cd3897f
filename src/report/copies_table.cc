#include "heddle/report/copies_table.h"

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? format_si(bytes_per_s, "B/s") : std::string("-");
}

std::string place(const Cluster& cluster, DeviceId id) {
  return id.valid() ? cluster.device(id).name : std::string("host");
}

// The bandwidth that the cluster states; 0 if it has none.
double declared_rate(const Cluster& cluster, const CopyRoute& copy) {
  const Route* route = copy.from.valid() && copy.to.valid()
                           ? cluster.route(copy.from, copy.to)
                           : cluster.load_route(copy.to.valid() ? copy.to : copy.from);
  return route == nullptr || route->hops.empty() ? 0 : route->bytes_per_s;
}

std::string names(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId id : devices) text += (text.empty() ? "" : ", ") + cluster.device(id).name;
  return text;
}

std::vector<int64_t> sizes_of(const CopyProfile& copies) {
  std::vector<int64_t> sizes;
  for (const CopyRoute& copy : copies.routes) {
    for (const CopyTime& time : copy.times) sizes.push_back(time.bytes);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string ways_text(const Cluster& before, const CopyProfile& copies) {
  using Column = TextTable::Column;
  const auto sizes = sizes_of(copies);
  std::vector<Column> columns = {{"from"}, {"to"}};
  for (const int64_t bytes : sizes) columns.push_back({format_bytes(bytes), kRight});
  for (const char* title : {"latency", "bandwidth", "file said"}) columns.push_back({title, kRight});
  TextTable table(columns);
  for (const CopyRoute& copy : copies.routes) {
    std::vector<std::string> row = {place(before, copy.from),
                                    place(before, copy.to) + (copy.direct ? "" : " by host")};
    for (const int64_t bytes : sizes) {
      const auto time = std::find_if(copy.times.begin(), copy.times.end(),
                                     [&](const CopyTime& t) { return t.bytes == bytes; });
      row.push_back(time == copy.times.end() ? "-" : format_us(time->us));
    }
    row.push_back(format_us(copy.line.latency_us));
    row.push_back(rate_text(copy.line.bytes_per_s));
    row.push_back(rate_text(declared_rate(before, copy)));
    table.add_row(row);
  }
  return "One copy, by its size:\n" + table.to_string();
}

std::string at_once_text(const Cluster& before, const CopyProfile& copies) {
  TextTable table({{"at once"}, {"together", kRight}, {"of free ways", kRight}, {"so"}});
  for (const CopiesAtOnce& set : copies.at_once) {
    const bool alone = set.devices.size() == 1;
    table.add_row({names(before, set.devices) + (alone ? ", both directions" : ""),
                   rate_text(set.bytes_per_s), percent(set.part),
                   alone ? (set.shared ? "half duplex" : "full duplex")
                         : (set.shared ? "share a bus" : "share nothing")});
  }
  return table.to_string();
}

}  // namespace

std::string copies_text(const Cluster& before, const CopyProfile& copies) {
  std::string text = ways_text(before, copies) + "\n" + at_once_text(before, copies);
  for (const auto& [device, why] : copies.left_out)
    text += "not measured: " + before.device(device).name + ": " + why + "\n";
  return text;
}

Json copies_json(const Cluster& before, const CopyProfile& copies) {
  const auto or_null = [](double rate) { return rate > 0 ? Json(rate) : Json(nullptr); };
  Json routes = Json::array(), at_once = Json::array(), left_out = Json::array();
  for (const CopyRoute& copy : copies.routes) {
    Json times = Json::array();
    for (const CopyTime& time : copy.times) times.push_back({time.bytes, time.us});
    routes.push_back({{"from", place(before, copy.from)},
                      {"to", place(before, copy.to)},
                      {"direct", copy.direct},
                      {"times", std::move(times)},
                      {"spread", copy.rel_spread},
                      {"latency_us", copy.line.latency_us},
                      {"bytes_per_s", copy.line.bytes_per_s},
                      {"declared_bytes_per_s", or_null(declared_rate(before, copy))}});
  }
  for (const CopiesAtOnce& set : copies.at_once) {
    Json devices = Json::array();
    for (const DeviceId id : set.devices) devices.push_back(before.device(id).name);
    at_once.push_back({{"devices", std::move(devices)},
                       {"bytes_per_s", set.bytes_per_s},
                       {"part", set.part},
                       {"shared", set.shared}});
  }
  for (const auto& [device, why] : copies.left_out)
    left_out.push_back({{"device", before.device(device).name}, {"reason", why}});
  return {{"copies", std::move(routes)}, {"at_once", std::move(at_once)}, {"left_out", std::move(left_out)}};
}

}  // namespace heddle
