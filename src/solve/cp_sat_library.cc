#include "cp_sat_library.h"

#include <dlfcn.h>
#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <type_traits>
#include <utility>

#include "heddle/base/wheels.h"
#include "solver_threads.h"

namespace heddle {
namespace {

#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The library's interface: an environment is created, passed to the solve and, from any thread until it is
// destroyed, to the stop function (which sets an atomic flag under the environment's own lock). Lengths are in
// bytes; the response is allocated by the library's malloc.
//
// The library has a namespace of the dynamic linker to itself, with its own C library: its protobuf, Abseil and HiGHS
// (libhighs.so.1, like highspy's, but another release) neither replace those of this process nor are replaced by them.
// A C library keeps state for each thread that it starts, so only threads of that C library call the functions.
struct CpSatLibrary {
  void* (*make)() = nullptr;
  void (*stop)(void* environment) = nullptr;
  void (*destroy)(void* environment) = nullptr;
  void (*solve_in)(void* environment, const void* model, int model_size, const void* parameters,
                   int parameters_size, void** response, int* response_size) = nullptr;
  // Of its C library.
  int (*start_thread)(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                      void* argument) = nullptr;
  int (*join_thread)(pthread_t thread, void** result) = nullptr;
  void (*free)(void* memory) = nullptr;
  std::string problem;  // why it cannot be used; empty: it can
};

CpSatLibrary refused(std::string problem) {
  CpSatLibrary library;
  library.problem = std::move(problem);
  return library;
}

CpSatLibrary load() {
  if (kSanitized) return refused("it cannot be loaded into a program that is built with a sanitizer");
  const auto file = find_in_wheels("ortools/.libs/libortools.so.*");
  if (!file.ok()) return refused(file.error().to_string());
  void* handle = ::dlmopen(LM_ID_NEWLM, file->c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return refused(std::string("cannot load it: ") + ::dlerror());
  CpSatLibrary library;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = ::dlsym(handle, name);
    if (symbol == nullptr && library.problem.empty()) {
      library.problem = *file + " has no " + name +
                        "; install the release of ortools that Heddle is tested with, " +
                        HEDDLE_ORTOOLS_VERSION;
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(library.make, "SolveCpNewEnv");
  find(library.stop, "SolveCpStopSearch");
  find(library.destroy, "SolveCpDestroyEnv");
  find(library.solve_in, "SolveCpInterruptible");
  find(library.start_thread, "pthread_create");
  find(library.join_thread, "pthread_join");
  find(library.free, "free");
  return library;
}

// A thread of the library's C library.
class LibraryThread {
 public:
  // `work` must live until the thread has been joined, and must not throw.
  template <class Work>
  LibraryThread(const CpSatLibrary& library, Work& work) : library_(library) {
    const auto run = [](void* argument) -> void* {
      (*static_cast<Work*>(argument))();
      return nullptr;
    };
    started_ = library.start_thread(&thread_, nullptr, run, &work) == 0;
  }
  ~LibraryThread() {
    if (started_) library_.join_thread(thread_, nullptr);
  }
  LibraryThread(const LibraryThread&) = delete;
  LibraryThread& operator=(const LibraryThread&) = delete;
  bool started() const { return started_; }

 private:
  const CpSatLibrary& library_;
  pthread_t thread_ = {};
  bool started_ = false;
};

// One search. Its thread makes the environment and destroys it when nobody will stop it any more.
class Search {
 public:
  Search(const CpSatLibrary& library, const std::string& model, const std::string& parameters)
      : library_(library), model_(model), parameters_(parameters) {}
  ~Search() { library_.free(response_); }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  Result<std::string> run(const Deadline& deadline) {
    auto solve = [this] { solve_in_library(); };
    {
      const LibraryThread thread(library_, solve);
      if (!thread.started()) return internal_error("no thread could be started");
      std::unique_lock lock(mutex_);
      while (!changed_.wait_for(lock, kSolverPoll, [this] { return ended_; })) {
        // Repeat: a stop before the search has begun could be lost.
        if (environment_ == nullptr || !deadline.should_stop()) continue;
        lock.unlock();
        auto stop = [this] { library_.stop(environment_); };
        { const LibraryThread stopper(library_, stop); }
        lock.lock();
      }
      left_ = true;
      changed_.notify_all();
    }
    if (response_ == nullptr || size_ < 0) return internal_error("no response came back");
    return std::string(static_cast<const char*>(response_), static_cast<size_t>(size_));
  }

 private:
  void solve_in_library() {
    void* const environment = library_.make();
    if (environment != nullptr) {
      {
        const std::lock_guard lock(mutex_);
        environment_ = environment;
      }
      library_.solve_in(environment, model_.data(), static_cast<int>(model_.size()), parameters_.data(),
                        static_cast<int>(parameters_.size()), &response_, &size_);
    }
    std::unique_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return left_; });
    lock.unlock();
    if (environment != nullptr) library_.destroy(environment);
  }

  const CpSatLibrary& library_;
  const std::string &model_, &parameters_;
  void* response_ = nullptr;
  int size_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  void* environment_ = nullptr;
  bool ended_ = false, left_ = false;
};

}  // namespace

Result<std::optional<std::string>> cp_sat_solve(std::string model, std::string parameters,
                                                const Deadline& deadline) {
  static const CpSatLibrary library = load();
  if (!library.problem.empty()) return unsupported(library.problem);
  auto answer = run_on_solver_thread<std::string>(
      [model = std::move(model), parameters = std::move(parameters), deadline] {
        return Search(library, model, parameters).run(deadline);
      },
      deadline);
  if (!answer) return std::optional<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(std::string bytes, std::move(*answer));
  return std::optional<std::string>(std::move(bytes));
}

}  // namespace heddle
