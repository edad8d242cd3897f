#include "cp_sat_library.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>

namespace heddle {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// The library's own declaration: lengths in bytes, the response allocated with malloc for the caller to free.
using SolveFunction = void (*)(const void* model, int model_size, const void* parameters, int parameters_size,
                               void** response, int* response_size);

struct Library {
  SolveFunction solve = nullptr;
  std::string problem;  // why `solve` is null
};

Library load() {
  if (kSanitized) return {nullptr, "it cannot be loaded into a program that is built with a sanitizer"};
  // LOCAL and DEEPBIND: its protobuf, Abseil and older HiGHS bind to one another and not to ours of the same
  // names.
  void* handle = ::dlopen(HEDDLE_ORTOOLS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  if (handle == nullptr)
    return {nullptr, std::string("cannot load it: ") + ::dlerror() + "; run `make setup`"};
  void* symbol = ::dlsym(handle, "SolveCpModelWithParameters");
  if (symbol == nullptr) {
    return {nullptr,
            "the library has no SolveCpModelWithParameters; run `make setup` for the release of ortools "
            "that Heddle is tested with"};
  }
  return {reinterpret_cast<SolveFunction>(symbol), ""};
}

}  // namespace

std::string cp_sat_version() { return HEDDLE_ORTOOLS_VERSION; }

Result<std::string> cp_sat_solve(std::string_view model, std::string_view parameters) {
  static const Library library = load();
  const std::string place = "CP-SAT of OR-Tools " + cp_sat_version();
  if (library.solve == nullptr) return Error(Code::kUnsupported, library.problem).with_context(place);
  if (model.size() > INT_MAX || parameters.size() > INT_MAX) {
    return Error(Code::kUnsupported, "the model is over 2 GiB").with_context(place);
  }
  void* response = nullptr;
  int size = 0;
  library.solve(model.data(), static_cast<int>(model.size()), parameters.data(),
                static_cast<int>(parameters.size()), &response, &size);
  if (response == nullptr || size < 0) {
    std::free(response);
    return Error(Code::kInternal, "no response came back").with_context(place);
  }
  std::string bytes(static_cast<const char*>(response), static_cast<size_t>(size));
  std::free(response);
  return bytes;
}

}  // namespace heddle
