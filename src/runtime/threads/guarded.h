// What backends throw becomes an Error: nothing may leave a worker thread.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "heddle/base/status.h"

namespace heddle {

// The result of `work`, a function that returns a Status or Result. Out of memory is kInfeasible.
template <class Work>
auto run_guarded(Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return Error(Code::kInfeasible, "out of memory");
  } catch (const std::exception& e) {
    return Error(Code::kInternal, std::string("an unexpected exception: ") + e.what());
  } catch (...) {
    return Error(Code::kInternal, "an unexpected exception of an unknown type");
  }
}

}  // namespace heddle
