// Turns exceptions from backends into Errors, because no exception may leave a worker thread.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "heddle/base/status.h"

namespace heddle {

// Calls `work`, which returns a Status or Result. Out of memory becomes kInfeasible.
template <class Work>
auto run_guarded(Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return infeasible("out of memory");
  } catch (const std::exception& e) {
    return internal_error(std::string("an unexpected exception: ") + e.what());
  } catch (...) {
    return internal_error("an unexpected exception of an unknown type");
  }
}

}  // namespace heddle
