#include "background.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "heddle/base/stopwatch.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;

constexpr auto kLook = std::chrono::milliseconds(50);  // between looks for signals
constexpr double kShowSeconds = 0.1;                   // between calls of the progress function

struct Progress {
  ProgressUpdate update;
  double elapsed_s = 0;
};

// The latest update and the end of the work.
class Reports final : public ProgressSink {
 public:
  void report(const ProgressUpdate& update) override {
    const std::lock_guard lock(mutex_);
    latest_ = update;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
  }
  // True once the work has ended.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLook, [&] { return ended_; });
  }
  std::optional<ProgressUpdate> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(latest_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ProgressUpdate> latest_;
  bool ended_ = false;
};

}  // namespace

void run_in_background(const nb::object& on_progress, Interrupted interrupted,
                       const std::function<bool(const Control&)>& work) {
  Reports reports;
  const Control control{.cancel = {}, .progress = &reports};
  const Stopwatch watch;
  bool succeeded = false;
  std::exception_ptr thrown;
  std::unique_ptr<nb::python_error> raised;
  double shown_s = -kShowSeconds;
  const auto show = [&] {
    if (on_progress.is_none() || raised || watch.seconds() - shown_s < kShowSeconds) return;
    auto update = reports.take();
    if (!update) return;
    shown_s = watch.seconds();
    on_progress(Progress{std::move(*update), shown_s});
  };
  {
    nb::gil_scoped_release release;
    std::thread thread([&] {
      try {
        succeeded = work(control);
      } catch (...) {
        thrown = std::current_exception();
      }
      reports.end();
    });
    for (bool ended = false; !ended;) {
      ended = reports.wait();
      nb::gil_scoped_acquire acquire;
      try {
        show();
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      } catch (nb::python_error& error) {
        control.cancel.cancel();
        // NOLINTNEXTLINE(bugprone-use-after-move): each turn has an exception of its own
        if (!raised) raised = std::make_unique<nb::python_error>(std::move(error));
      }
    }
    thread.join();
  }
  if (thrown) std::rethrow_exception(thrown);
  if (!raised) return;
  if (interrupted == Interrupted::kKeepsResult && succeeded && raised->matches(PyExc_KeyboardInterrupt))
    return;
  throw nb::python_error(std::move(*raised));
}

void bind_progress(nb::module_& module) {
  nb::class_<Progress>(module, "Progress", "How far long work is; what `on_progress` is called with.")
      .def_prop_ro(
          "what", [](const Progress& p) { return p.update.what; }, "The kind of work.")
      .def_prop_ro(
          "done", [](const Progress& p) { return p.update.done; }, "Work done, in the unit of `total`.")
      .def_prop_ro(
          "total", [](const Progress& p) { return p.update.total; }, "All work; 0 if it is not known.")
      .def_prop_ro(
          "best_us", [](const Progress& p) { return p.update.best_us; },
          "The objective's best value so far, in us.")
      .def_prop_ro(
          "bound_us", [](const Progress& p) { return p.update.bound_us; }, "The lower bound so far, in us.")
      .def_ro("elapsed_s", &Progress::elapsed_s, "Seconds since the call began.")
      .def("__repr__", [](const Progress& p) { return progress_line(p.update, p.elapsed_s); });
}

}  // namespace heddle::python
