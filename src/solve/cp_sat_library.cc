#include "cp_sat_library.h"

#include <dlfcn.h>

#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>

#include "solver_threads.h"

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

// The library's interface: an environment is created, passed to the solve and, from any thread until it is
// destroyed, to the stop function (which sets an atomic flag under the environment's own lock). Lengths are in
// bytes; the response is allocated by malloc and freed by the caller.
struct CpSatLibrary {
  void* (*make)() = nullptr;
  void (*stop)(void* environment) = nullptr;
  void (*destroy)(void* environment) = nullptr;
  void (*solve_in)(void* environment, const void* model, int model_size, const void* parameters,
                   int parameters_size, void** response, int* response_size) = nullptr;
  std::string problem;  // why it cannot be used; empty: it can
};

CpSatLibrary refused(std::string problem) {
  CpSatLibrary library;
  library.problem = std::move(problem);
  return library;
}

CpSatLibrary load() {
  if (kSanitized) return refused("it cannot be loaded into a program that is built with a sanitizer");
  // LOCAL and DEEPBIND: its protobuf, Abseil and older HiGHS bind to one another, not to our libraries.
  void* handle = ::dlopen(HEDDLE_ORTOOLS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  if (handle == nullptr) return refused(std::string("cannot load it: ") + ::dlerror() + "; run `make setup`");
  CpSatLibrary library;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = ::dlsym(handle, name);
    if (symbol == nullptr && library.problem.empty()) {
      library.problem = std::string("the library has no ") + name +
                        "; run `make setup` for the release of ortools that Heddle is tested with";
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(library.make, "SolveCpNewEnv");
  find(library.stop, "SolveCpStopSearch");
  find(library.destroy, "SolveCpDestroyEnv");
  find(library.solve_in, "SolveCpInterruptible");
  return library;
}

Result<std::string> taken(void* response, int size) {
  if (response == nullptr || size < 0) {
    std::free(response);
    return Error(Code::kInternal, "no response came back");
  }
  std::string bytes(static_cast<const char*>(response), static_cast<size_t>(size));
  std::free(response);
  return bytes;
}

// Runs on the solver thread.
Result<std::string> solve_in_library(const CpSatLibrary& library, const std::string& model,
                                     const std::string& parameters, const Deadline& deadline) {
  void* environment = library.make();
  if (environment == nullptr) return Error(Code::kInternal, "no environment came back");
  void* response = nullptr;
  int size = 0;
  {
    const std::jthread watcher([&](const std::stop_token& done) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any wake;
      while (!done.stop_requested()) {
        // Repeat: a stop before the search has begun could be lost.
        if (deadline.should_stop()) library.stop(environment);
        wake.wait_for(lock, done, kSolverPoll, [] { return false; });
      }
    });
    library.solve_in(environment, model.data(), static_cast<int>(model.size()), parameters.data(),
                     static_cast<int>(parameters.size()), &response, &size);
  }
  library.destroy(environment);
  return taken(response, size);
}

}  // namespace

Result<std::optional<std::string>> cp_sat_solve(std::string model, std::string parameters,
                                                const Deadline& deadline) {
  static const CpSatLibrary library = load();
  if (!library.problem.empty()) return Error(Code::kUnsupported, library.problem);
  auto answer = run_on_solver_thread<std::string>(
      [model = std::move(model), parameters = std::move(parameters), deadline] {
        return solve_in_library(library, model, parameters, deadline);
      },
      deadline);
  if (!answer) return std::optional<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(std::string bytes, std::move(*answer));
  return std::optional<std::string>(std::move(bytes));
}

}  // namespace heddle
