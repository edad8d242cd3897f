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
double rate_of(const Route* route) {
  return route == nullptr || route->hops.empty() ? 0 : route->bytes_per_s;
}
double load_rate(const Cluster& cluster, DeviceId device) { return rate_of(cluster.load_route(device)); }
double declared_rate(const Cluster& cluster, const CopyRoute& copy) {
  return copy.from.valid() && copy.to.valid() ? rate_of(cluster.route(copy.from, copy.to))
                                              : load_rate(cluster, copy.to.valid() ? copy.to : copy.from);
}

std::string names(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId id : devices) text += (text.empty() ? "" : ", ") + cluster.device(id).name;
  return text;
}

std::vector<int64_t> sizes_of(const CopyProfile& copies) {
  std::vector<int64_t> sizes;
  for (const CopyRoute& copy : copies.routes) {
    for (const CopyTime& time : copy.times) sizes.push_back(time.bytes);  // in-place reads have the same
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
  const auto add = [&](const std::string& from, const std::string& to, const std::vector<CopyTime>& times,
                       const CopyLine& line, double declared) {
    std::vector<std::string> row = {from, to};
    for (const int64_t bytes : sizes) {
      const auto time =
          std::find_if(times.begin(), times.end(), [&](const CopyTime& t) { return t.bytes == bytes; });
      row.push_back(time == times.end() ? "-" : format_us(time->us));
    }
    row.push_back(format_us(line.latency_us));
    row.push_back(rate_text(line.bytes_per_s));
    row.push_back(rate_text(declared));
    table.add_row(row);
  };
  for (const CopyRoute& copy : copies.routes)
    add(place(before, copy.from), place(before, copy.to) + (copy.direct ? "" : " by host"), copy.times,
        copy.line, declared_rate(before, copy));
  for (const InPlaceReads& reads : copies.in_place)
    add("host", place(before, reads.device) + " in place", reads.times, reads.line,
        load_rate(before, reads.device));
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
  for (const InPlaceReads& reads : copies.in_place)
    table.add_row({place(before, reads.device) + ", in place and copies",
                   rate_text(reads.beside_copies.bytes_per_s), percent(reads.beside_copies.part),
                   reads.beside_copies.shared ? "share the link" : "share nothing"});
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
  Json routes = Json::array(), at_once = Json::array(), in_place = Json::array(), left_out = Json::array();
  const auto times_json = [](const std::vector<CopyTime>& list) {
    Json times = Json::array();
    for (const CopyTime& time : list) times.push_back({time.bytes, time.us});
    return times;
  };
  for (const CopyRoute& copy : copies.routes) {
    routes.push_back({{"from", place(before, copy.from)},
                      {"to", place(before, copy.to)},
                      {"direct", copy.direct},
                      {"times", times_json(copy.times)},
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
  for (const InPlaceReads& reads : copies.in_place)
    in_place.push_back({{"device", place(before, reads.device)},
                        {"times", times_json(reads.times)},
                        {"spread", reads.rel_spread},
                        {"latency_us", reads.line.latency_us},
                        {"bytes_per_s", reads.line.bytes_per_s},
                        {"declared_bytes_per_s", or_null(load_rate(before, reads.device))},
                        {"beside_copies_bytes_per_s", reads.beside_copies.bytes_per_s},
                        {"part", reads.beside_copies.part},
                        {"shared", reads.beside_copies.shared}});
  for (const auto& [device, why] : copies.left_out)
    left_out.push_back({{"device", before.device(device).name}, {"reason", why}});
  return {{"copies", std::move(routes)},
          {"at_once", std::move(at_once)},
          {"in_place", std::move(in_place)},
          {"left_out", std::move(left_out)}};
}

}  // namespace heddle
