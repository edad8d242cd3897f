// Work in a process of its own: what is measured there starts as cold as a program that was just started.
#pragma once

#include <functional>

#include "heddle/base/json.h"
#include "heddle/base/status.h"

namespace heddle {

// Forks, does the work there and brings back its JSON or its error. A child that crashes or is killed is an
// error; kCancelled if SIGINT or SIGTERM ended it. The caller must not have started threads that hold locks; the
// child ends with the caller.
Result<Json> run_in_child(const std::function<Result<Json>()>& work);

}  // namespace heddle
