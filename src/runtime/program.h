// A plan's lane as a DAG of tasks to be counted down. Immutable while the engine runs it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/backend.h"

namespace heddle {

// Rows of numbers in one array.
struct Rows {
  std::vector<uint32_t> begin = {0};
  std::vector<int32_t> items;
  std::span<const int32_t> operator[](size_t row) const {
    return std::span<const int32_t>(items).subspan(begin[row], begin[row + 1] - begin[row]);
  }
  // From (row, item) pairs, in any order; doubles vanish.
  static Rows from_pairs(size_t rows, std::vector<std::pair<int32_t, int32_t>> pairs);
};

enum class Action : uint8_t {
  kInstant,   // no time: whoever finished the last input runs it at once
  kTimed,     // the clock finishes it `duration_ns` after its start
  kBlocking,  // run() on the worker thread of its device
};

struct Task {
  Action action = Action::kInstant;
  bool spin_after = false;  // by the plan nobody else uses the worker's cores before its next task
  int32_t plan_step = -1;
  int32_t segment = -1;  // to be run; -1 for transfers and loads
  int32_t worker = -1;   // kBlocking: the device
  int64_t duration_ns = 0;
};

// A tensor's stay in one memory pool, where memory is limited and the executor has to account for it.
struct Stay {
  int64_t bytes = 0;
  int32_t pool = 0;
  int32_t readers = 0;  // tasks that release it (one more for model outputs: the request's end)
};

struct Program {
  int lane = 0;
  std::vector<Task> tasks;  // in the plan's order
  Rows successors;
  std::vector<int32_t> pending;  // inputs to wait for, per task
  std::vector<int32_t> roots;    // tasks with none
  int32_t sinks = 0;             // tasks without successors
  Rows resources;                // pipelined: what a task that takes time occupies
  Rows handovers;                // kBlocking: transfers by reference that feed it
  std::vector<Stay> stays;
  Rows takes, releases;       // per task: stays
  std::vector<int32_t> held;  // stays released when the request ends
};

// A segment as the executor sees it.
struct SegmentPorts {
  std::vector<TensorId> inputs, outputs;  // of the plan's graph, ascending
};
// `lane_segment[lane][op]`.
std::vector<std::vector<int32_t>> ops_to_segments(const Problem& problem, const Plan& plan);
SegmentPorts segment_ports(const Graph& graph, const Segment& segment, std::span<const int32_t> op_segment,
                           int32_t self);

struct ProgramInput {
  const Problem& problem;
  const Plan& plan;
  const Timeline& timeline;                             // the evaluator's: where emulated durations come from
  const std::vector<SegmentPorts>& ports;               // per segment
  const std::vector<const CompiledSegment*>& compiled;  // per segment
  const std::vector<bool>& moves_data;                  // per device
  // True: every resource serves its tasks in the plan's order, by edges. False: the engine arbitrates.
  bool ordered = true;
};
Program make_program(const ProgramInput& input, int lane);

}  // namespace heddle
