// What changes from one deployment to the next of a simulation: which devices go on, and which have to load.
#pragma once

#include <span>
#include <vector>

#include "heddle/fleet/simulator.h"

namespace heddle {

// The times, their order, and that every plan has the deployment's classes, models and SLOs.
Status check_migrations(const Deployment& first, std::span<const PlanMigration> migrations);

// [class] devices that `from` leaves unused and that `to` needs for roles which `from` lacks.
std::vector<int64_t> spares_needed(const Deployment& from, const Deployment& to);

// [virtual device of `to`] the time at which it has loaded; 0: it is ready now. Virtual devices with a role of
// `from` go on; `loaded` has their times, or is empty if all are ready. Of the others as many as fit on the `spares`
// are ready. The rest loads from now on.
std::vector<TimeNs> loading_ends(const Deployment& from, const Deployment& to, std::span<const TimeNs> loaded,
                                 std::span<const int64_t> spares, TimeNs now, TimeNs load);

}  // namespace heddle
