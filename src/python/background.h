// Long calls: the work runs in a thread of its own, without the GIL, while the calling thread hands progress to a
// Python function and looks for signals, so that Ctrl-C ends the work.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <optional>
#include <utility>

#include "errors.h"
#include "heddle/base/control.h"

namespace heddle::python {

// What an interrupt (or an error in the progress function) does with a result that came all the same.
enum class Interrupted { kRaises, kKeepsResult };

// Runs `work` until it returns; needs the GIL, and gives it up meanwhile. `on_progress` takes a Progress, or is
// None. Raises what `on_progress` raised. An interrupt raises KeyboardInterrupt, unless `work` still succeeds and
// its result may be kept.
void run_in_background(const nanobind::object& on_progress, Interrupted interrupted,
                       const std::function<bool(const Control&)>& work);

// The same for functions that return a Result.
template <class Work>
auto call_in_background(const nanobind::object& on_progress, Interrupted interrupted, const Work& work) {
  std::optional<decltype(work(Control{}))> result;
  run_in_background(on_progress, interrupted, [&](const Control& control) {
    result.emplace(work(control));
    return result->ok();
  });
  return value_or_raise(std::move(*result));
}

void bind_progress(nanobind::module_& module);

}  // namespace heddle::python
