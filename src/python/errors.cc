#include "errors.h"

#include <nanobind/stl/string.h>

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
  for (const auto& context : error.contexts()) place.append(nb::str(context.c_str()));
  const nb::object exception = type(error.message(), nb::tuple(place));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace heddle::python
