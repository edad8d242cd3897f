// Heddle's errors as Python exceptions (heddle/_errors.py).
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heddle/base/status.h"

namespace heddle::python {

// Needs the GIL.
[[noreturn]] void raise(const Error& error);

// What is not UTF-8 becomes single surrogates, as in Python's file names.
nanobind::str python_text(const std::string& text);
// str(value) in UTF-8. Raises UnicodeEncodeError if it cannot be.
std::string utf8_of(nanobind::handle value);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}
// A limit on the time for planning, in seconds. Raises if it is negative, not a number, or longer than 10^7 s.
double checked_time_limit(double seconds);
inline void ok_or_raise(const heddle::Status& status) {
  if (!status.ok()) raise(status.error());
}

}  // namespace heddle::python
