#include "cp_sat_library.h"

#include <dlfcn.h>

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
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

// As declared by the library: lengths in bytes; the response is allocated by malloc and freed by the caller.
using SolveFunction = void (*)(const void* model, int model_size, const void* parameters, int parameters_size,
                               void** response, int* response_size);

// The interruptible form: an environment is created, passed to the solve and, from any thread until it is
// destroyed, to the stop function (which sets an atomic flag under the environment's own lock).
using NewEnvironment = void* (*)();
using StopFunction = void (*)(void* environment);
using InterruptibleFunction = void (*)(void* environment, const void* model, int model_size,
                                       const void* parameters, int parameters_size, void** response,
                                       int* response_size);

struct Library {
  SolveFunction solve = nullptr;
  NewEnvironment make = nullptr;
  StopFunction stop = nullptr, destroy = nullptr;
  InterruptibleFunction solve_in = nullptr;
  std::string problem;  // why `solve` is null
};

Library refused(std::string problem) {
  Library library;
  library.problem = std::move(problem);
  return library;
}

Library load() {
  if (kSanitized) return refused("it cannot be loaded into a program that is built with a sanitizer");
  // LOCAL and DEEPBIND: its protobuf, Abseil and older HiGHS bind to one another, not to our libraries.
  void* handle = ::dlopen(HEDDLE_ORTOOLS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  if (handle == nullptr) return refused(std::string("cannot load it: ") + ::dlerror() + "; run `make setup`");
  Library library;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = ::dlsym(handle, name);
    if (symbol == nullptr && library.problem.empty()) {
      library.problem = std::string("the library has no ") + name +
                        "; run `make setup` for the release of ortools that Heddle is tested with";
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(library.solve, "SolveCpModelWithParameters");
  find(library.make, "SolveCpNewEnv");
  find(library.stop, "SolveCpStopSearch");
  find(library.destroy, "SolveCpDestroyEnv");
  find(library.solve_in, "SolveCpInterruptible");
  return library;
}

Result<const Library*> library_for(std::string_view model, std::string_view parameters) {
  static const Library library = load();
  if (!library.problem.empty()) return Error(Code::kUnsupported, library.problem);
  if (model.size() > INT_MAX || parameters.size() > INT_MAX) {
    return Error(Code::kUnsupported, "the model is over 2 GiB");
  }
  return &library;
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

std::string place() { return "CP-SAT of OR-Tools " + cp_sat_version(); }

// Stops the environment's search at the deadline, from a thread that lives as long as this object.
class Watcher {
 public:
  Watcher(const Library& library, void* environment, const Deadline& deadline)
      : thread_([this, &library, environment, &deadline] {
          std::unique_lock lock(mutex_);
          while (!done_) {
            // Repeat: a stop before the search has begun could be lost.
            if (deadline.should_stop()) library.stop(environment);
            wake_.wait_for(lock, std::chrono::milliseconds(10));
          }
        }) {}
  ~Watcher() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

// One interruptible solve. Owns everything that its thread needs, because the thread may outlive the call.
class Search {
 public:
  Search(const Library& library, std::string model, std::string parameters, const Deadline& deadline)
      : library_(library),
        model_(std::move(model)),
        parameters_(std::move(parameters)),
        deadline_(deadline) {}

  // Runs on the solver thread.
  void work() {
    auto answer = solve();
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    done_.notify_one();
  }

  // Runs on the caller's thread. nullopt: the search did not stop in time and is abandoned.
  Result<std::optional<std::string>> wait() {
    std::unique_lock lock(mutex_);
    std::optional<Clock::time_point> stopped;
    while (!answer_) {
      done_.wait_for(lock, std::chrono::milliseconds(10));
      if (answer_ || !deadline_.should_stop()) continue;
      if (!stopped) stopped = Clock::now();
      if (Clock::now() - *stopped < kSolverPatience) continue;
      await_solver_threads_at_exit();
      return std::optional<std::string>();
    }
    if (!answer_->ok()) return std::move(*answer_).error();
    return std::optional<std::string>(std::move(**answer_));
  }

 private:
  using Clock = std::chrono::steady_clock;

  Result<std::string> solve() {
    void* environment = library_.make();
    if (environment == nullptr) return Error(Code::kInternal, "no environment came back");
    void* response = nullptr;
    int size = 0;
    {
      const Watcher watcher(library_, environment, deadline_);
      library_.solve_in(environment, model_.data(), static_cast<int>(model_.size()), parameters_.data(),
                        static_cast<int>(parameters_.size()), &response, &size);
    }
    library_.destroy(environment);
    return taken(response, size);
  }

  const Library& library_;
  const std::string model_, parameters_;
  const Deadline deadline_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<Result<std::string>> answer_;
};

}  // namespace

std::string cp_sat_version() { return HEDDLE_ORTOOLS_VERSION; }

Result<std::string> cp_sat_solve(std::string_view model, std::string_view parameters) {
  const auto library = library_for(model, parameters);
  if (!library.ok()) return Error(library.error()).with_context(place());
  void* response = nullptr;
  int size = 0;
  (*library)->solve(model.data(), static_cast<int>(model.size()), parameters.data(),
                    static_cast<int>(parameters.size()), &response, &size);
  auto bytes = taken(response, size);
  if (!bytes.ok()) return std::move(bytes).error().with_context(place());
  return bytes;
}

Result<std::optional<std::string>> cp_sat_solve(std::string model, std::string parameters,
                                                const Deadline& deadline) {
  const auto library = library_for(model, parameters);
  if (!library.ok()) return Error(library.error()).with_context(place());
  const auto search = std::make_shared<Search>(**library, std::move(model), std::move(parameters), deadline);
  run_on_solver_thread([search] { search->work(); });
  auto answer = search->wait();
  if (!answer.ok()) return std::move(answer).error().with_context(place());
  return answer;
}

}  // namespace heddle
