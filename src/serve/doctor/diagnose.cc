// The rules of `heddle doctor URL`. Each looks at what the server has measured and says what, where and what to do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "heddle/base/json_fields.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"
#include "heddle/serve/fleet_doctor.h"
#include "status/status_fields.h"

namespace heddle {
namespace {

// Clocks are compared by people alone: in logs, traces and certificates.
constexpr double kMostSkew_us = 100'000;
// A round trip belongs to each step of a request.
constexpr double kMostTripOfSlo = .05, kLeastSlowTrip_us = 5000;
// A map takes its bytes over the bandwidth, and some time of its own.
constexpr double kMostLinkFactor = 2, kMapOwnTime_s = .02;
constexpr double kLeastMaps = 5;
constexpr double kMostWaiting = .1, kLeastCompute_s = .05;
constexpr double kLeastRequests = 50;  // in the window; else those since the server's start count

std::string worker_name(const Json& worker) { return "worker " + text_in(worker, "name"); }

bool is_connected(const Json& worker) { return text_in(worker, "state") == "connected"; }

std::vector<int> ints_in(const Json& of, const char* name) {
  std::vector<int> out;
  for (const auto& v : list_in(of, name))
    if (v.is_number_integer()) out.push_back(v.get<int>());
  return out;
}

std::string cores_text(const std::vector<int>& cores) {
  std::string out;
  for (const int c : cores) out += (out.empty() ? "" : ", ") + std::to_string(c);
  return (cores.size() == 1 ? "core " : "cores ") + out;
}

class Examination {
 public:
  Examination(const FleetAnswers& answers, double attainment)
      : a_(answers), workers_(list_in(answers.after, "workers")), attainment_(attainment) {}

  FleetHealth all() {
    look_at_clocks();
    look_at_round_trips();
    look_at_links();
    look_at_cores();
    look_at_waiting();
    look_at_versions();
    look_at_models();
    look_at_standbys();
    look_at_pools();
    look_at_attainment();
    return std::move(health_);
  }

 private:
  void find(const char* check, std::string where, std::string what, std::string todo) {
    health_.findings.push_back({check, std::move(where), std::move(what), std::move(todo)});
  }
  void looked(const char* check, std::string known) { health_.checked.emplace_back(check, std::move(known)); }
  // The member by the same name before the window; null: it was not there.
  const Json* before(const char* list, const Json& now) const {
    return member_in(list_in(a_.before, list), text_in(now, "name"));
  }

  void look_at_clocks() {
    double most = 0, most_error = 0;
    size_t known = 0;
    for (const auto& w : workers_) {
      if (!is_connected(w) || field_in(w, "clock_ahead_us") == nullptr) continue;
      const double ahead = number_in(w, "clock_ahead_us"), error = number_in(w, "clock_error_us");
      ++known;
      most = std::max(most, std::fabs(ahead));
      most_error = std::max(most_error, error);
      if (std::fabs(ahead) - error <= kMostSkew_us) continue;
      find("clocks", worker_name(w),
           "its clock is " + format_us(std::fabs(ahead)) + (ahead > 0 ? " ahead of" : " behind") +
               " the server's, give or take " + format_us(error),
           "synchronise the clocks of both hosts (chrony or systemd-timesyncd; see `timedatectl`)");
    }
    if (known > 0)
      looked("clocks", counted(known, "worker") + ", at most " + format_us(most) + " off (give or take " +
                           format_us(most_error) + ")");
  }

  void look_at_round_trips() {
    double slo_us = 0;
    for (const auto& m : list_in(a_.after, "models"))
      if (const double slo = number_in(m, "slo_us"); slo > 0 && (slo_us == 0 || slo < slo_us)) slo_us = slo;
    const double most = std::max(kLeastSlowTrip_us, kMostTripOfSlo * slo_us);
    double longest = 0;
    size_t known = 0;
    for (const auto& w : workers_) {
      if (!is_connected(w) || number_in(w, "pings") < 1) continue;
      const double least = number_in(w, "round_trip_us"), median = number_in(w, "median_trip_us");
      ++known;
      longest = std::max(longest, least);
      if (least <= most) continue;
      find("links", "server to " + worker_name(w),
           "a message and its answer take " + format_us(least) + " at best (median " + format_us(median) +
               "), more than " + format_us(most) + ", a twentieth of the shortest SLO",
           "look at the network between the two hosts: routes, VPNs, load (`ping`, `mtr`)");
    }
    if (known > 0)
      looked("links", counted(known, "worker") + ", at best " + format_us(longest) + " to the farthest");
  }

  // Of a worker's devices, the slowest network interface by the fleet file; 0: none is known.
  double bandwidth_of(const std::string& worker) const {
    const Json* w = member_in(workers_, worker);
    double least = 0;
    if (w == nullptr) return 0;
    for (const auto& [name, count] : object_in(*w, "devices").items()) {
      const Json* c = member_in(list_in(object_in(a_.fleet, "fleet"), "classes"), name);
      const double nic = c == nullptr ? 0 : number_in(*c, "nic");
      if (nic > 0 && (least == 0 || nic < least)) least = nic;
    }
    return least;
  }

  void look_at_links() {
    double maps_of_all = 0;
    for (const auto& w : workers_) {
      if (!is_connected(w)) continue;
      const Json* was = before("workers", w);
      for (const auto& link : list_in(w, "links")) {
        const auto to = text_in(link, "to");
        const Json* then = was == nullptr ? nullptr : member_in(list_in(*was, "links"), to, "to");
        // A new session counts from 0.
        if (then != nullptr && number_in(*then, "maps") > number_in(link, "maps")) then = nullptr;
        const auto since = [&](const char* name) {
          return number_in(link, name) - (then == nullptr ? 0 : number_in(*then, name));
        };
        maps_of_all += since("maps");
        look_at_link(worker_name(w) + " to worker " + to,
                     std::min(bandwidth_of(text_in(w, "name")), bandwidth_of(to)), since("maps"),
                     since("bytes"), since("seconds"), since("failed"));
      }
    }
    if (maps_of_all > 0) looked("links", fmt::format("{:.0f} feature maps between workers", maps_of_all));
  }

  void look_at_link(const std::string& where, double bandwidth, double maps, double bytes, double seconds,
                    double failed) {
    if (failed > 0)
      find("links", where, fmt::format("{:.0f} of {:.0f} feature maps did not arrive", failed, failed + maps),
           "look at the network between the two hosts, and at the receiver's log");
    if (maps < kLeastMaps || !(bandwidth > 0)) return;
    const double took = seconds / maps, planned = bytes / maps / bandwidth;
    if (took <= kMostLinkFactor * planned + kMapOwnTime_s) return;
    find("links", where,
         fmt::format("a feature map of {} takes {}, {} by the fleet file's bandwidth",
                     format_bytes(static_cast<int64_t>(bytes / maps)), format_us(took * kUsPerSecond),
                     format_us(planned * kUsPerSecond)),
         "look at the network between the two hosts (`iperf3`); if it is as it should be, give the classes' "
         "true "
         "`nic` in the fleet file and plan again");
  }

  struct Device {
    std::string worker;
    const Json* json = nullptr;
    std::vector<int> cores;
    std::string where() const {
      return "worker " + worker + ", device " +
             std::to_string(static_cast<int64_t>(number_in(*json, "device"))) + " of class " +
             text_in(*json, "class");
    }
  };
  std::vector<Device> computing() const {
    std::vector<Device> out;
    for (const auto& w : workers_)
      if (is_connected(w))
        for (const auto& d : list_in(w, "cores"))
          out.push_back({text_in(w, "name"), &d, ints_in(d, "cores")});
    return out;
  }
  // A device of another worker on the same host with one of the same cores, which it may not share; null: none.
  static const Device* overlapping(const Device& device, const std::vector<Device>& all) {
    const auto is_shared = [](const Device& d) {
      const Json* shared = field_in(*d.json, "shared");
      return shared != nullptr && shared->is_boolean() && shared->get<bool>();
    };
    for (const auto& other : all) {
      if (other.worker == device.worker || text_in(*other.json, "host").empty() ||
          text_in(*other.json, "host") != text_in(*device.json, "host") ||
          (is_shared(device) && is_shared(other)))
        continue;
      for (const int core : device.cores)
        if (std::ranges::find(other.cores, core) != other.cores.end()) return &other;
    }
    return nullptr;
  }

  void look_at_cores() {
    const auto devices = computing();
    std::map<std::string, std::map<size_t, size_t>> sizes;  // [class][number of cores]: devices
    for (const auto& d : devices)
      if (!d.cores.empty()) ++sizes[text_in(*d.json, "class")][d.cores.size()];
    for (const auto& d : devices) {
      const auto of_class = text_in(*d.json, "class");
      if (const Device* other = overlapping(d, devices); other != nullptr && d.worker < other->worker)
        find("cores", d.where(),
             cores_text(d.cores) + " overlap with " + cores_text(other->cores) + " of worker " +
                 other->worker + " on the same host, and the plan takes them for two devices",
             "give each worker its own devices, such as --devices " + of_class +
                 "=cpu0 and =cpu1, or start both with --share-cores");
      if (const auto bound = ints_in(*d.json, "bound"); !bound.empty())
        find("cores", d.where(),
             "its thread runs on " + cores_text(bound) + " instead of " + cores_text(d.cores),
             "look who has bound it: a container's CPU set, Slurm's --cpus-per-task, or taskset");
      const auto& of_sizes = sizes[of_class];
      const auto most = std::ranges::max_element(of_sizes, {}, [](const auto& s) { return s.second; });
      if (!d.cores.empty() && of_sizes.size() > 1 && d.cores.size() != most->first)
        find("cores", d.where(),
             "it has " + counted(d.cores.size(), "core") + "; most of its class have " +
                 std::to_string(most->first) + ", and the plan takes them for equal",
             "give its worker other --devices, or make it a class of its own in the fleet file");
    }
    if (!devices.empty()) looked("cores", counted(devices.size(), "device") + " that compute");
  }

  void look_at_waiting() {
    for (const auto& w : workers_) {
      const Json* was = before("workers", w);
      if (!is_connected(w) || was == nullptr) continue;
      const double compute = number_in(w, "compute_s") - number_in(*was, "compute_s");
      const double waited = number_in(w, "waited_s") - number_in(*was, "waited_s");
      if (compute < kLeastCompute_s || waited <= kMostWaiting * compute) continue;
      find("cores", worker_name(w),
           "its runs had no core for " + percent(std::min(1.0, waited / compute)) + " of their time",
           "look who else uses its cores (`top`), and move one of the two");
    }
  }

  void look_at_versions() {
    const auto of_server = text_in(a_.after, "version");
    if (of_server.empty()) return looked("versions", "the server is too old to say its own");
    const double protocol = number_in(a_.after, "protocol");
    size_t known = 0;
    for (const auto& w : workers_) {
      const auto program = text_in(w, "program");
      const double theirs = number_in(w, "protocol");
      if (theirs == 0) continue;
      known += is_connected(w);
      if (theirs == protocol && (program.empty() || program == of_server)) continue;
      const std::string what =
          theirs == protocol
              ? "its program is " + program + ", the server's " + of_server
              : fmt::format("it has version {:.0f} of the workers' protocol, the server {:.0f}", theirs,
                            protocol);
      find("versions", worker_name(w),
           what + (is_connected(w) ? "" : "; it is not used: " + text_in(w, "reason")),
           "finish the upgrade: stop the worker with SIGTERM and start it with the server's version");
    }
    for (const auto& s : a_.standbys) {
      const auto theirs = text_in(s.answer, "version");
      if (!theirs.empty() && theirs != of_server)
        find("versions", "standby " + s.name, "its program is " + theirs + ", the server's " + of_server,
             "finish the upgrade before this standby has to lead");
    }
    looked("versions", "the server has " + of_server + ", " + counted(known, "worker"));
  }

  void look_at_models() {
    for (const auto& m : a_.index.is_array() ? a_.index : Json::array())
      if (text_in(m, "state") != "READY")
        find("models", "model " + text_in(m, "name"), "it is not served: " + text_in(m, "reason"),
             "correct its file or settings, then load it (POST v2/repository/models/NAME/load)");
    for (const auto& m : list_in(a_.after, "models"))
      if (!(number_in(m, "rate_per_s") > 0))
        find("models", "model " + text_in(m, "name"),
             "the plan gives it no devices, so its requests are refused",
             "plan with more devices or a longer SLO, and switch to that plan (`heddle server switch`)");
    for (const auto& m : list_in(object_in(a_.fleet, "fleet"), "models"))
      if (member_in(list_in(a_.after, "models"), text_in(m, "name")) == nullptr)
        find("models", "model " + text_in(m, "name"), "it is in the fleet and not served",
             "switch to a plan that has it (`heddle server switch`)");
    const auto devices = computing();
    for (const auto& d : devices)
      if (const auto why = text_in(*d.json, "refused"); !why.empty() && overlapping(d, devices) == nullptr)
        find("models", d.where(), "it does not load its part: " + why,
             "put the model's file there (--models DIR), or give the worker the right devices, and restart "
             "it");
    looked("models", counted(list_in(a_.after, "models").size(), "model"));
  }

  void look_at_standbys() {
    const auto leader = text_in(object_in(a_.after, "leader"), "name");
    for (const auto& s : a_.standbys) {
      const auto other = text_in(s.answer, "leader");
      if (!s.unreachable.empty())
        find("standby", "standby " + s.name, "it does not answer: " + s.unreachable,
             "start it again: until then nobody takes over if the server dies");
      else if (s.leads)
        find("standby", "standby " + s.name, "it leads a fleet of its own",
             "start it with the same --state as the server");
      else if (leader.empty())
        find("standby", "standby " + s.name, "the server has no --state, so nobody can take over from it",
             "start both with the same --state");
      else if (!other.empty() && other != leader)
        find("standby", "standby " + s.name, "it follows '" + other + "', not '" + leader + "'",
             "start it with the same --state as the server");
    }
    if (!a_.standbys.empty()) {
      looked("standby", counted(a_.standbys.size(), "standby server"));
    } else if (!leader.empty()) {
      looked("standby", "not looked at; give their addresses by --standby");
    }
  }

  void look_at_pools() {
    std::string lost_workers;
    for (const auto& w : workers_)
      if (!is_connected(w))
        lost_workers += (lost_workers.empty() ? "" : "; ") + text_in(w, "name") + " is " +
                        text_in(w, "state") + ": " + text_in(w, "reason");
    const std::string todo = lost_workers.empty()
                                 ? "start workers with such devices (`heddle worker --devices`)"
                                 : "bring the workers back (" + lost_workers + ")";
    const Json &pools = list_in(a_.after, "pools"), &then = list_in(a_.before, "pools");
    for (size_t i = 0; i < pools.size(); ++i) {
      const Json& p = pools[i];
      // A device that rests for a moment after a failed run is not gone.
      const double devices = number_in(p, "devices"),
                   lost = i < then.size() ? std::min(number_in(p, "lost"), number_in(then[i], "lost")) : 0;
      if (lost == 0) continue;
      find("pools",
           fmt::format("model {}, pipeline {:.0f}, part {:.0f} on class {}", text_in(p, "model"),
                       number_in(p, "pipeline"), number_in(p, "partition"), text_in(p, "class")),
           lost == devices ? "no device is left"
                           : fmt::format("{:.0f} of {:.0f} devices are gone", lost, devices),
           todo);
    }
    looked("pools", counted(pools.size(), "pool"));
  }

  void look_at_attainment() {
    double requests = 0;
    for (const auto& m : list_in(a_.after, "models")) {
      auto [all, in_time] = settled_requests(m);
      std::string when = "since the server's start";
      if (const Json* was = before("models", m); was != nullptr) {
        const auto [all_then, in_time_then] = settled_requests(*was);
        requests += std::max(0.0, all - all_then);
        if (all - all_then >= kLeastRequests) {
          all -= all_then;
          in_time -= in_time_then;
          when = fmt::format("in the last {:.3g} s", a_.seconds);
        }
      }
      if (all < kLeastRequests || in_time >= attainment_ * all) continue;
      find("attainment", "model " + text_in(m, "name"),
           fmt::format("of {:.0f} requests {} were in time {}; {} are wanted", all, percent(in_time / all),
                       when, percent(attainment_)),
           "see docs/runbook.md, HeddleRequestsLate: look for a saturated pool, slow devices, or bursts");
    }
    looked("attainment", fmt::format("{:.0f} requests in {:.3g} s", requests, a_.seconds));
  }

  const FleetAnswers& a_;
  const Json& workers_;
  const double attainment_;
  FleetHealth health_;
};

}  // namespace

FleetHealth diagnose(const FleetAnswers& answers, double attainment) {
  return Examination(answers, attainment).all();
}

std::string health_text(const FleetHealth& health) {
  TextTable table({{"check"}, {"state"}, {"detail"}});
  for (const auto& [check, known] : health.checked) {
    const bool fails = std::ranges::count(health.findings, check, &FleetFinding::check) > 0;
    table.add_row({check, fails ? painted(Ink::kRed, "FAILS") : painted(Ink::kGreen, "ok"), known});
  }
  std::string text;
  if (!health.checked.empty()) text += table.to_string();
  for (const auto& f : health.findings)
    text += (text.empty() ? "" : "\n") + painted(Ink::kRed, f.check) + ": " + f.where + ": " + f.what +
            "\n  to do: " + f.todo + "\n";
  return text;
}

}  // namespace heddle
