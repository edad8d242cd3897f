#pragma once

#include <memory>

#include "heddle/planners/planner.h"

namespace heddle {

std::unique_ptr<Planner> make_lns();

}  // namespace heddle
