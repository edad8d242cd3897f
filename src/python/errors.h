// Heddle's errors as Python exceptions (heddle/_errors.py).
#pragma once

#include <nanobind/nanobind.h>

#include "heddle/base/status.h"

namespace heddle::python {

// Needs the GIL.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}
inline void ok_or_raise(const heddle::Status& status) {
  if (!status.ok()) raise(status.error());
}

}  // namespace heddle::python
