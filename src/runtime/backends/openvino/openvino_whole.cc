// Runs the unsplit model with OpenVINO alone, for reference outputs and comparisons.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "heddle/graph/model.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/sampling.h"
#include "openvino_session.h"
#include "run/rounds.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

using openvino::current_error;

// Not thread-safe.
class WholeModel {
 public:
  // Compiles for all cores with OpenVINO's own hint, and copies the inputs into every request.
  Status build(const Model& model, ov::hint::PerformanceMode hint, std::span<const TensorValue> inputs) {
    try {
      compiled_ = openvino::core().compile_model(model.whole(), "CPU", openvino::whole_cpu_config(hint));
      const uint32_t count = hint == ov::hint::PerformanceMode::LATENCY
                                 ? 1
                                 : compiled_.get_property(ov::optimal_number_of_infer_requests);
      for (uint32_t i = 0; i < std::max(count, 1U); ++i) {
        requests_.push_back(compiled_.create_infer_request());
        HEDDLE_RETURN_IF_ERROR(openvino::copy_inputs(requests_.back(), inputs));
      }
      return {};
    } catch (...) {
      return current_error("compiling the whole model");
    }
  }

  // The number in flight.
  int requests() const { return static_cast<int>(requests_.size()); }

  // One synchronous request.
  Status infer() {
    try {
      requests_.front().infer();
      return {};
    } catch (...) {
      return current_error("running the whole model");
    }
  }

  // Asynchronous, requests() in flight.
  Status infer_many(int count) {
    std::mutex mutex;
    std::condition_variable changed;
    int issued = 0, left = count;
    bool failed = false;
    try {
      for (auto& request : requests_) {
        request.set_callback([&, &own = request](std::exception_ptr error) {
          bool again = false;
          {
            const std::lock_guard lock(mutex);
            failed |= error != nullptr;
            --left;
            again = issued < count && !failed;
            issued += again ? 1 : 0;
            if (left == 0 || failed) changed.notify_one();
          }
          if (again) own.start_async();
        });
      }
      const int first = std::min(count, requests());
      issued = first;
      for (int i = 0; i < first; ++i) requests_[static_cast<size_t>(i)].start_async();
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return left == 0 || failed; });
      lock.unlock();
      for (auto& request : requests_) request.wait();
      for (auto& request : requests_) request.set_callback([](std::exception_ptr) {});
    } catch (...) {
      return current_error("running the whole model");
    }
    if (failed) return Error(Code::kUnsupported, "OpenVINO failed at running the whole model");
    return {};
  }

  // Of the first request.
  Result<std::vector<TensorValue>> outputs() {
    std::vector<TensorValue> values;
    try {
      for (size_t i = 0; i < compiled_.outputs().size(); ++i) {
        const ov::Tensor tensor = requests_.front().get_output_tensor(i);
        const ov::Shape shape = tensor.get_shape();
        const auto dtype = openvino::dtype_of(tensor.get_element_type());
        if (!dtype)
          return Error(Code::kUnsupported, "an output's element type cannot be compared: " +
                                               tensor.get_element_type().get_type_name());
        HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(*dtype, Shape(shape.begin(), shape.end())));
        std::memcpy(value.data.get(), tensor.data(), static_cast<size_t>(value.bytes));
        values.push_back(std::move(value));
      }
    } catch (...) {
      return current_error("reading outputs");
    }
    return values;
  }

 private:
  ov::CompiledModel compiled_;
  std::vector<ov::InferRequest> requests_;
};

}  // namespace

Result<std::vector<TensorValue>> reference_outputs(const Model& model, std::span<const TensorValue> inputs) {
  WholeModel whole;
  HEDDLE_RETURN_IF_ERROR(whole.build(model, ov::hint::PerformanceMode::LATENCY, inputs));
  HEDDLE_RETURN_IF_ERROR(whole.infer());
  return whole.outputs();
}

Result<Comparison> compare_with_openvino(const Problem& problem, const Plan& plan,
                                         std::shared_ptr<const Model> model, const RoundOptions& options) {
  const bool throughput = problem.objective == Objective::kThroughput;
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*problem.graph, options.inputs));
  HEDDLE_ASSIGN_OR_RETURN(const auto executor, open_for_rounds(problem, plan, model, options, inputs));
  WholeModel whole;
  HEDDLE_RETURN_IF_ERROR(whole.build(
      *model, throughput ? ov::hint::PerformanceMode::THROUGHPUT : ov::hint::PerformanceMode::LATENCY,
      inputs));
  // Latency: the median of requests one after the other. Throughput: the time of all, per request.
  const auto timed = [&](int count, const std::function<Status(int count)>& run) -> Result<double> {
    std::vector<double> times;
    const int at_once = throughput ? count : 1;
    for (int i = 0; i < count; i += at_once) {
      const int64_t start = now_ns();
      HEDDLE_RETURN_IF_ERROR(run(at_once));
      times.push_back(static_cast<double>(now_ns() - start) / 1000 / at_once);
    }
    return median_us(times);
  };
  const auto ours = [&](int count) {
    return timed(count, [&](int requests) -> Status {
      StreamOptions stream;
      stream.requests = requests;
      stream.deadline = options.deadline;
      const auto result = executor->run_stream(stream);
      return result.ok() ? Status() : Status(result.error());
    });
  };
  const auto theirs = [&](int count) {
    return timed(count,
                 [&](int requests) { return throughput ? whole.infer_many(requests) : whole.infer(); });
  };
  const int our_slots = executor->slots(), their_slots = whole.requests();
  HEDDLE_ASSIGN_OR_RETURN(const int our_count,
                          requests_per_round(ours, our_slots, throughput ? 4 * our_slots : 1, options));
  HEDDLE_ASSIGN_OR_RETURN(const int their_count,
                          requests_per_round(theirs, their_slots, throughput ? 4 * their_slots : 1, options));
  HEDDLE_ASSIGN_OR_RETURN(const RoundTimes times,
                          time_in_turns([&] { return ours(our_count); }, [&] { return theirs(their_count); },
                                        options, "comparing"));
  std::vector<double> ratios;
  for (size_t i = 0; i < times.first.size(); ++i) ratios.push_back(times.first[i] / times.second[i]);
  return Comparison{.ours_us = median_us(times.first),
                    .openvino_us = median_us(times.second),
                    .ratio = median_us(ratios),
                    .ratio_low = quantile_us(ratios, 0.25),
                    .ratio_high = quantile_us(ratios, 0.75),
                    .rounds = static_cast<int>(ratios.size()),
                    .openvino_requests = whole.requests()};
}

}  // namespace heddle
