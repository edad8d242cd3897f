#include "heddle/base/sync.h"

namespace heddle::internal {

constinit thread_local SimulatedSystem* simulated = nullptr;

}  // namespace heddle::internal
