#include "migrations.h"

#include <algorithm>
#include <functional>
#include <map>

namespace heddle {
namespace {

constexpr size_t kMostMigrations = UINT16_MAX;
constexpr int64_t kUnitsOfDevice = 12;  // shares of 1, 2, 3 and 4 are 12, 6, 4 and 3 units

template <class Take>
void for_each_member(const Deployment& d, const Take& take) {
  for (const auto& p : d.pipelines)
    for (const auto& pool : p.partitions)
      for (uint32_t n = 0; n < pool.num_devices; ++n) take(pool.role, pool.first_device + n);
}

}  // namespace

Status check_migrations(const Deployment& first, std::span<const PlanMigration> migrations) {
  if (migrations.size() > kMostMigrations) return unsupported("more than 65535 migrations");
  TimeNs least_at = 0;
  for (const auto& m : migrations) {
    if (m.to == nullptr || m.at < 0 || m.load < 0 || m.load > 3600 * kNsPerSecond)
      return invalid_input("a migration needs a plan, a time from 0 and a load time of at most an hour");
    if (m.at < least_at)
      return invalid_input(
          "a migration begins before the one before it, or before that one's spare devices have loaded");
    least_at = m.at + (m.spares_first ? m.load : 0);
    HEDDLE_RETURN_IF_ERROR(check_deployment(*m.to));
    bool same = m.to->models.size() == first.models.size() && m.to->classes.size() == first.classes.size();
    for (size_t i = 0; same && i < first.models.size(); ++i)
      same = m.to->models[i].name == first.models[i].name && m.to->models[i].slo_ns == first.models[i].slo_ns;
    if (!same) return invalid_input("a migration's plans must have the same classes, models and SLOs");
  }
  return {};
}

std::vector<int64_t> spares_needed(const Deployment& from, const Deployment& to) {
  std::map<PoolRole, int64_t> there;
  for_each_member(from, [&](const PoolRole& role, uint32_t) { ++there[role]; });
  std::vector<int64_t> units(to.classes.size(), 0);
  for_each_member(to, [&](const PoolRole& role, uint32_t v) {
    if (there[role]-- <= 0) units[to.devices[v].device_class] += kUnitsOfDevice / to.devices[v].share;
  });
  for (size_t c = 0; c < units.size(); ++c)
    units[c] = std::min((units[c] + kUnitsOfDevice - 1) / kUnitsOfDevice,
                        from.classes[c].devices - int64_t{from.classes[c].used});
  return units;
}

std::vector<TimeNs> loading_ends(const Deployment& from, const Deployment& to, std::span<const TimeNs> loaded,
                                 std::span<const int64_t> spares, TimeNs now, TimeNs load) {
  std::map<PoolRole, std::vector<TimeNs>> there;
  for_each_member(from, [&](const PoolRole& role, uint32_t v) {
    there[role].push_back(v < loaded.size() && loaded[v] > now ? loaded[v] : 0);
  });
  for (auto& [role, times] : there) std::sort(times.begin(), times.end(), std::greater<>());
  std::vector<int64_t> units(to.classes.size(), 0);
  for (size_t c = 0; c < spares.size(); ++c) units[c] = spares[c] * kUnitsOfDevice;
  std::vector<TimeNs> ends(to.devices.size(), 0);
  for_each_member(to, [&](const PoolRole& role, uint32_t v) {
    auto& kept = there[role];
    const int64_t own = kUnitsOfDevice / to.devices[v].share;
    int64_t& spare = units[to.devices[v].device_class];
    if (!kept.empty()) {
      ends[v] = kept.back();
      kept.pop_back();
    } else if (spare >= own) {
      spare -= own;
    } else if (load > 0) {
      ends[v] = now + load;
    }
  });
  return ends;
}

}  // namespace heddle
