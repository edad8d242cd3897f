// Does a model whose parts are in other processes give what the whole gives? The random row of the whole
// through every chain of devices, as a request would go.
#pragma once

#include "heddle/base/cancel.h"
#include "heddle/fleet/deployment.h"
#include "heddle/serve/remote_devices.h"
#include "machine/fleet_files.h"

namespace heddle {

// Chain i of a pipeline has the i-th device of each pool (counted on from the first where a pool has fewer),
// so that each device is in one. Devices that are not there make their chains be left out, which the outcome
// tells. Nobody else may listen to `devices` meanwhile. Errors: a step that fails, a device that is lost
// under it or takes longer than a minute more than three times its planned time.
Result<SplitCheck> check_remote(RemoteDevices& devices, const Deployment& deployment, uint32_t model,
                                const UnsplitModel& whole, const CancelToken& cancel);

}  // namespace heddle
