// A plan's lane as a DAG of tasks with dependency counts. Immutable while the engine runs it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/backend.h"
#include "seats.h"

namespace heddle {

// Rows of numbers, stored in one array.
struct Rows {
  std::vector<uint32_t> begin = {0};
  std::vector<int32_t> items;
  std::span<const int32_t> operator[](size_t row) const {
    return std::span<const int32_t>(items).subspan(begin[row], begin[row + 1] - begin[row]);
  }
  // From (row, item) pairs in any order; duplicates are removed.
  static Rows from_pairs(size_t rows, std::vector<std::pair<int32_t, int32_t>> pairs);
};

enum class Action : uint8_t {
  kInstant,   // takes no time; the thread that finished its last input runs it at once
  kTimed,     // the clock finishes it `duration_ns` after its start
  kBlocking,  // run() on the worker thread of its device
  kSend,      // several ranks: sends a tensor to another rank; done when its memory may be reused
};

// What a task enqueues on an accelerator's streams. The task counts as done once enqueued; its successors
// wait for its event (Program::waits).
enum class Enqueue : uint8_t {
  kNothing,
  kRun,       // a segment, by run() on its worker
  kTransfer,  // copy of a tensor between memories
  kLoad,      // copy of a segment's parameters
  kUpload,    // copies a model input or a received tensor to the memory of a device that reads it
  kFetch,     // copies a model output or a tensor to be sent to the host; no step of the plan
  kCollect,   // nothing: waits for everything at the request's end
};

struct Task {
  Action action = Action::kInstant;
  Enqueue enqueue = Enqueue::kNothing;
  bool spin_after = false;  // by the plan, only this worker uses its cores until its next task
  int32_t plan_step = -1;
  int32_t segment = -1;  // segment to run; -1 for transfers and loads
  int32_t worker = -1;   // kBlocking: the seat
  int32_t message = -1;  // kSend: index into Program::sends
  bool arrival = false;  // kInstant, made ready by a message from another rank or directly after one
  int64_t duration_ns = 0;
  int32_t tensor = -1, device = -1;  // kUpload: target device; kFetch: source device
};

// A tensor in a memory pool that is limited, for which the executor must account.
struct Residency {
  int64_t bytes = 0;
  int32_t pool = 0;
  int32_t readers = 0;  // tasks that release it; for model outputs one more, the request's end
};

// A message between ranks: a task is done on one rank, for which the other one waits. It may carry a tensor.
struct Message {
  int32_t peer = 0;     // the other rank
  int32_t number = 0;   // number in the lane, the same on both ranks
  int32_t tensor = -1;  // -1: carries nothing
  int32_t memory = 0;   // memory of the tensor on this rank (ProgramInput::memory_of)
  int32_t task = -1;    // received: the arrival; sent: the kSend, or -1 if no task waits for the memory
};

struct Program {
  int lane = 0;
  std::vector<Task> tasks;  // in the plan's order
  Rows successors;
  std::vector<int32_t> pending;  // number of inputs to wait for, per task
  std::vector<int32_t> roots;    // tasks without inputs
  int32_t sinks = 0;             // tasks without successors
  Rows resources;                // pipelined: what each timed or blocking task occupies
  Rows handovers;                // kBlocking: by-reference transfers into it
  std::vector<Residency> residencies;
  Rows takes, releases;       // per task: residencies
  std::vector<int32_t> held;  // residencies that end when the request ends
  // Several ranks: this rank's messages in the plan's order; `messages` is the total of all ranks.
  std::vector<Message> sends, receives;
  Rows signals;  // [task]: sends without a tensor when it is done
  int32_t messages = 0;
  Rows waits;  // [task]: enqueueing tasks whose events it awaits; empty without accelerators
};
// For each task, the last tasks before it that enqueue. Edges lead forward. O(tasks + edges) sets.
Rows waits_of(const std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& edges);

// Sets Task::spin_after: a worker may spin for its next task if, by the plan, that task is the next one on
// each of its cores. `uses`: (task, resource), sorted by task. O(uses).
void mark_spins(std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& uses,
                int32_t resources, size_t seats);

// A segment's tensors as the executor sees them.
struct SegmentPorts {
  std::vector<TensorId> inputs, outputs;  // of the plan's graph, ascending
};
// `lane_segment[lane][op]`.
std::vector<std::vector<int32_t>> ops_to_segments(const Problem& problem, const Plan& plan);
SegmentPorts segment_ports(const Graph& graph, const Segment& segment, std::span<const int32_t> op_segment,
                           int32_t self);

// One rank's part of the plan. Every rank derives the same messages from the same plan.
struct RankView {
  int self = 0;
  std::vector<int> rank_of_device;
  // Send tensors between ranks even if the devices are emulated. Otherwise such transfers take the plan's
  // time, and the receiver gets a message without content.
  bool real_transfers = false;
  // [device] true for accelerators whose memory the ranks' transports access. For other accelerators,
  // messages go through pinned host memory.
  std::vector<bool> direct = {};
};

struct ProgramInput {
  const Problem& problem;
  const Plan& plan;
  const Timeline& timeline;                             // the evaluator's; source of emulated durations
  const std::vector<SegmentPorts>& ports;               // per segment
  const std::vector<const CompiledSegment*>& compiled;  // per segment
  const std::vector<bool>& moves_data;                  // per device
  const Seats& seats;
  // True: edges make every resource serve its tasks in the plan's order. False: the engine arbitrates.
  bool ordered = true;
  const RankView* ranks = nullptr;  // null: one process runs everything
  // [device] the memory that it computes in: 0 is its host's, others are accelerators'. Numbers of accelerators
  // differ between ranks, but every rank distinguishes the same memories.
  std::vector<int32_t> memory_of;
  // (a, b): the load of segment b follows the run of segment a (ParameterLayout::reuses).
  std::vector<std::pair<int32_t, int32_t>> reuses = {};
};
Program make_program(const ProgramInput& input, int lane);

// Accounts for tensors in limited memory that is not really allocated: fills residencies, takes, releases and held
// of a program with final tasks. `run_task`: this rank's tasks by segment. O(tasks + tensors read).
void account_memory(const ProgramInput& input, const std::unordered_map<int32_t, int32_t>& run_task,
                    Program& program);

}  // namespace heddle
