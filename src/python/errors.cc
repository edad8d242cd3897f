#include "errors.h"

#include <fmt/format.h>

namespace heddle::python {
namespace {

namespace nb = nanobind;

const char* class_name(Code code) {
  switch (code) {
    case Code::kInvalidInput:
      return "InvalidInputError";
    case Code::kNotFound:
      return "NotFoundError";
    case Code::kUnsupported:
      return "UnsupportedError";
    case Code::kInfeasible:
      return "InfeasibleError";
    case Code::kVerificationFailed:
      return "VerificationError";
    case Code::kCancelled:
      return "CancelledError";
    case Code::kIo:
      return "FileError";
    case Code::kInternal:
      break;
  }
  return "InternalError";
}

}  // namespace

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("heddle._errors").attr(class_name(error.code()));
  nb::list place;
  for (const auto& context : error.contexts()) place.append(python_text(context));
  const nb::object exception = type(python_text(error.message()), nb::tuple(place));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

double checked_time_limit(double seconds) {
  constexpr double kMost_s = 1e7;
  if (!(seconds >= 0 && seconds <= kMost_s))
    raise(invalid_input(fmt::format("time_limit {}: expected 0 to {:.0f} seconds", seconds, kMost_s)));
  return seconds;
}

nb::str python_text(const std::string& text) {
  PyObject* const made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

std::string utf8_of(nb::handle value) {
  const nb::str text(value);
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  return {bytes, static_cast<size_t>(size)};
}

}  // namespace heddle::python
