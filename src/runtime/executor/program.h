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
#include "seats.h"

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
  kSend,      // several ranks: a tensor goes to another rank; done when its memory is free again
};

// What a task enqueues on an accelerator's streams. It counts as done when that is enqueued; who follows
// waits for its event (Program::waits).
enum class Enqueue : uint8_t {
  kNothing,
  kRun,       // of a segment, by run() on its worker
  kTransfer,  // of a tensor from one memory to another
  kLoad,      // of a segment's parameters
  kUpload,    // a model input, or what came from another rank, to the memory of a device that reads it
  kFetch,     // a model output, or what goes to another rank, to the host; no step of the plan
  kCollect,   // nothing: the end of the request, which waits for all of it
};

struct Task {
  Action action = Action::kInstant;
  Enqueue enqueue = Enqueue::kNothing;
  bool spin_after = false;  // by the plan nobody else uses the worker's cores before its next task
  int32_t plan_step = -1;
  int32_t segment = -1;  // to be run; -1 for transfers and loads
  int32_t worker = -1;   // kBlocking: the seat
  int32_t message = -1;  // kSend: of Program::sends
  bool arrival = false;  // kInstant, made ready by a message from another rank or following one at once
  int64_t duration_ns = 0;
  int32_t tensor = -1, device = -1;  // kUpload: to where; kFetch: from where
};

// A tensor's stay in one memory pool, where memory is limited and the executor has to account for it.
struct Stay {
  int64_t bytes = 0;
  int32_t pool = 0;
  int32_t readers = 0;  // tasks that release it (one more for model outputs: the request's end)
};

// Something that another rank waits for or this one does: that a task is done there, with or without a
// tensor.
struct Message {
  int32_t peer = 0;     // the other rank
  int32_t number = 0;   // among all messages of the lane, the same on both ranks
  int32_t tensor = -1;  // -1: carries nothing
  int32_t memory = 0;   // where the tensor is here (ProgramInput::memory_of)
  int32_t task = -1;    // received: the arrival; sent: the kSend, or -1 where no task waits for the memory
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
  // Several ranks: this one's messages, in the plan's order, and how many all ranks have among them.
  std::vector<Message> sends, receives;
  Rows signals;  // per task: sends without a tensor that go out when it is done
  int32_t messages = 0;
  Rows waits;  // per task: tasks that enqueue, whose events it waits for; empty without accelerators
};
// For each task the last tasks before it that enqueue. Edges lead forward. O(tasks + edges) sets.
Rows waits_of(const std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& edges);

// Sets Task::spin_after: a worker may spin for its next task when, on each of its cores, that task is the
// next one by the plan. `uses`: (task, resource), by task. O(uses).
void mark_spins(std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& uses,
                int32_t resources, size_t seats);

// A segment as the executor sees it.
struct SegmentPorts {
  std::vector<TensorId> inputs, outputs;  // of the plan's graph, ascending
};
// `lane_segment[lane][op]`.
std::vector<std::vector<int32_t>> ops_to_segments(const Problem& problem, const Plan& plan);
SegmentPorts segment_ports(const Graph& graph, const Segment& segment, std::span<const int32_t> op_segment,
                           int32_t self);

// Which part of the plan is this rank's. Every rank derives the same messages from the same plan.
struct RankView {
  int self = 0;
  std::vector<int> rank_of_device;
  // Tensors go from rank to rank even where the devices are emulated; otherwise such transfers take the
  // plan's time, and the receiver gets a message without content.
  bool real_transfers = false;
  // Per device: an accelerator whose memory the ranks' transports read and write. From and to others tensors
  // go through pinned memory of the host.
  std::vector<bool> direct = {};
};

struct ProgramInput {
  const Problem& problem;
  const Plan& plan;
  const Timeline& timeline;                             // the evaluator's: where emulated durations come from
  const std::vector<SegmentPorts>& ports;               // per segment
  const std::vector<const CompiledSegment*>& compiled;  // per segment
  const std::vector<bool>& moves_data;                  // per device
  const Seats& seats;
  // True: every resource serves its tasks in the plan's order, by edges. False: the engine arbitrates.
  bool ordered = true;
  const RankView* ranks = nullptr;  // null: everything is here
  // Per device the memory that it computes in: 0 is its host's, others are accelerators'. Empty: all 0.
  // Over several ranks the numbers differ from rank to rank, what has one of its own does not.
  std::vector<int32_t> memory_of = {};
  // (a, b): segment b's load follows segment a's run (ParameterLayout::reuses).
  std::vector<std::pair<int32_t, int32_t>> reuses = {};
};
Program make_program(const ProgramInput& input, int lane);

}  // namespace heddle
