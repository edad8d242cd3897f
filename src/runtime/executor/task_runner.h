// The task runner counts down dependencies and runs ready tasks, if possible on the thread that made
// them ready (docs/runtime.md).
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "device_issuer.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/transport.h"
#include "program.h"
#include "threads/mailbox.h"

namespace heddle {

struct PeerMemory {
  int peer = 0;  // the other rank
  std::span<std::byte> memory;
};

struct TaskRunnerSetup {
  const Plan* plan = nullptr;
  const Cluster* cluster = nullptr;
  std::vector<Program> programs;               // per lane
  std::vector<int> slot_lane, slot_instance;   // per slot; the instance numbers the slots of a lane
  std::vector<CompiledSegment*> compiled;      // per segment
  std::vector<std::vector<int>> worker_cores;  // per seat; used if tasks block
  std::vector<int64_t> pool_limit;             // bytes for tensors per pool; 0: no limit
  bool ordered = true;
  double spin_us = 0;
  // Cold starts (one slot): called at a request's start, after all counts are set. It marks the segments
  // whose gate is closed. A closed gate adds one to the count of the segment's task.
  std::function<void(std::vector<bool>& closed)> close_gates;
  // Called when the counts are set; from now on gates may be opened.
  std::function<void(int64_t begin_ns)> gates_closed;
  // Several ranks, all with the same slots; null: one process runs everything. send_memory and
  // receive_memory: per slot, the memory of Program::sends and receives; empty for messages without a tensor.
  // Only the thread that calls run() uses the transport.
  Transport* transport = nullptr;
  std::vector<std::vector<std::span<std::byte>>> send_memory, receive_memory;
  // Several ranks whose requests come one by one, per slot: on rank 0 the model's inputs for each rank that
  // reads them and the outputs from the ranks that make them; on the other ranks their side of it.
  std::vector<std::vector<PeerMemory>> input_memory, output_memory;
  DeviceIssuer* issuer = nullptr;  // null: no accelerators
};

class TaskRunner {
 public:
  explicit TaskRunner(TaskRunnerSetup setup);
  ~TaskRunner();
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  Result<StreamResult> run(const StreamOptions& options);
  // Requests that come one by one (task_runner_intake.cc). Between begin_intake() and end_intake() one thread is
  // in serve_intake(), and any other may call run_request(), one call for each slot at a time.
  void begin_intake();
  void serve_intake();
  Status run_request(int slot);
  void end_intake();  // no request is under way; serve_intake() returns
  // The same over several ranks, for serve_intake(): every rank calls it, on the
  // thread that owns the transport. Only rank 0 calls run_request() and end_intake(), which ends the intake
  // of all ranks. If ranks are lost, requests end with that error, which is returned, and `stop` is cancelled.
  Status serve_rank_intake(const CancelToken& stop);
  // From any thread, once for each closed gate of the running request: the segment is ready. What follows
  // runs or is handed on from this thread.
  void open_gate(int32_t segment);
  // Ends the running request with this error; the gates must still be opened.
  void fail(Error error);
  bool stopped() const { return stop_.load(std::memory_order_acquire); }
  int slots() const { return static_cast<int>(slots_.size()); }

  const RequestTiming& last_timing(int slot) const { return slots_[static_cast<size_t>(slot)]->timing; }
  int64_t peak_bytes(int pool) const {
    return pool_peak_[static_cast<size_t>(pool)].load(std::memory_order_relaxed);
  }

 private:
  // Of a slot: no request, a request whose inputs have not arrived yet, a running request.
  enum class Phase { kWaits, kStarts, kRuns };
  // A rank's message to rank 0 at the end of a request; an empty text means success.
  struct EndReport {
    int32_t code = 0;
    std::array<char, 508> text{};
  };
  // One thread's own data, which is not shared.
  struct Local {
    std::vector<int32_t> instant;   // to be run by this thread, now
    std::vector<int32_t> ready;     // to be handed to the clock or a worker
    std::vector<int32_t> finished;  // whose resources are to be given back (pipelined)
    std::vector<int32_t> ended;     // slots whose request is done
    int64_t now = 0;
    int32_t polled = 0;
  };
  struct RequestSlot {
    const Program* program = nullptr;
    int index = 0, instance = 0;
    int64_t request = -1, begin_ns = 0;
    std::unique_ptr<std::atomic<int32_t>[]> pending, readers;
    std::vector<int64_t> start_ns, finish_ns;  // per task
    std::vector<StepTiming> steps;             // per plan step
    std::atomic<int32_t> sinks_left{0};
    // Several ranks; only run()'s thread uses these.
    int32_t first_tag = 0;
    size_t receives_posted = 0, awaited = 0;   // receives posted so far; of these, those still missing
    bool ends_posted = false, ending = false;  // end messages are awaited; this rank has sent its own
    int ends = 0;                              // end messages that have arrived
    std::vector<std::byte> end_words;          // their contents, per rank
    // Intake of several ranks.
    Phase phase = Phase::kWaits;
    int64_t number = 0;              // the start message: the request's number, or that there is none
    size_t missing = 0;              // messages that end the phase
    std::vector<EndReport> reports;  // rank 0: by rank; other ranks: their own is the first
    RequestTiming timing;
    // Intake.
    std::atomic<bool> failed{false};
    std::optional<Error> error;           // of this request alone; guarded by stream_mutex_
    std::atomic<int32_t> pending_end{0};  // 1 from the request's start to its end
    Local entry;                          // of the thread that brings the request
  };
  // A task of a slot with its due time; id = slot * stride_ + task.
  struct Due {
    int64_t at_ns;
    int32_t id;
    bool operator<(const Due& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : id > other.id;
    }
  };
  struct Waiting {
    int64_t request;
    int32_t task, id;
    bool operator<(const Waiting& o) const {
      return request != o.request ? request < o.request : task < o.task;
    }
  };
  struct Worker {
    Mailbox box;
    std::vector<int> cores;
    bool used = false, alone = false;  // no other used device shares its cores
    bool spin_first = false;           // may spin from the request's start on
    std::thread thread;
  };

  // A message of the slot's program, or the message that its request has ended on this rank.
  struct Outgoing {
    int32_t slot, message, id;  // `message` may be kEnded or kStarted; `id` is the kSend's, or -1
    int32_t task;               // task of the slot that is reported or sent
  };
  static constexpr int32_t kEnded = -1, kStarted = -2;

  // The stream ends, or this request does: tasks pass through without work.
  bool stopped(const RequestSlot& slot) const {
    return stopped() || slot.failed.load(std::memory_order_acquire);
  }
  // Ends the slot's request with this error and, in a stream, all others with it.
  void fail(RequestSlot& slot, Error error);

  RequestSlot& slot_of(int32_t id) { return *slots_[static_cast<size_t>(id / stride_)]; }
  void prepare_slots();
  void prepare_workers();
  void reserve(Local& local) const;

  void worker_main(size_t index);
  void serve(const Deadline& deadline);
  void serve_as_worker(Worker& worker, const Deadline& deadline);
  void serve_clock(const Deadline& deadline);
  // Several ranks (task_runner_ranks.cc): run()'s thread is the clock and talks to the transport.
  void serve_ranks(const Deadline& deadline);
  void post_send(RequestSlot& slot, int32_t message, int32_t id, int32_t task);
  bool may_go(const Outgoing& o);
  void send_signals(RequestSlot& slot, size_t task);
  bool exchange_messages();
  Status move_messages(std::vector<int64_t>& done);
  Status send_message(const Outgoing& o);
  Status receive_messages(RequestSlot& slot);
  Status receive_ends(RequestSlot& slot);
  void open_slot(RequestSlot& slot);
  bool goes_on(const RequestSlot& slot) const;
  int64_t end_token(const RequestSlot& slot) const;
  void post_end(RequestSlot& slot);
  void end_arrived(RequestSlot& slot);
  void message_arrived(int32_t id);
  void lose_ranks(Error error);
  void give_up_messages();
  // Intake over several ranks (task_runner_intake.cc).
  enum class IntakeTag { kStart, kInput, kOutput, kCall };
  bool first() const { return setup_.transport->rank() == 0; }
  int32_t intake_tag(IntakeTag kind, const RequestSlot& slot) const;
  Status send_number(const RequestSlot& slot, const int64_t& number);
  Status await_start(RequestSlot& slot);
  Status start_on_ranks(RequestSlot& slot);
  void start_here(RequestSlot& slot);
  Status end_here(RequestSlot& slot);
  void end_on_ranks(RequestSlot& slot);
  Status take_intake_message(RequestSlot& slot);
  void intake_message_arrived(int64_t number);
  Status call_ranks();
  Status send_call(int to);
  Status await_call(int from);
  Status call_arrived(int from);
  Status watch_ranks();
  void message_done(int32_t id);
  int64_t serve_due(Local& local);
  void drain_stopped(Local& local);
  void poll(const Deadline& deadline);

  void start_request(RequestSlot& slot, Local& local, int64_t request);
  void end_request(RequestSlot& slot, Local& local);
  void end_intake_request(RequestSlot& slot);
  void end_stream();
  void begin_stream(Local& local);
  void reset_stream(const StreamOptions& options);
  void nudge_spinners();

  void run_instant(int32_t id, Local& local);
  void run_blocking(int32_t id, Local& local, int64_t previous_finish_ns);
  void run_segment(RequestSlot& slot, const Task& task);
  void enqueue_copies(RequestSlot& slot, int32_t task);
  void complete(int32_t id, Local& local);
  void enqueue(RequestSlot& slot, int32_t task, Local& local);
  void drain(Local& local);
  void flush(Local& local);
  void arbitrate(Local& local);
  void dispatch(int32_t id, int64_t now);
  void add_due(Due due);

  bool take_memory(RequestSlot& slot, int32_t task);
  void release_residency(RequestSlot& slot, int32_t residency);
  int64_t spin_ns(const Worker& worker, const Task* last) const;

  TaskRunnerSetup setup_;
  int32_t stride_ = 1;
  bool timed_ = false, tracks_memory_ = false;
  bool intake_ = false;  // changes only while no request is under way
  StreamOptions intake_stream_;
  std::atomic<int64_t> taken_in_{0};  // requests
  std::vector<bool> closed_;          // gates, per segment
  std::vector<int32_t> gate_task_;    // per segment: its task in slot 0
  int home_ = -1;                     // the worker that the caller plays; -1: none
  std::vector<std::unique_ptr<RequestSlot>> slots_;
  std::vector<std::unique_ptr<Worker>> workers_;  // per seat
  Mailbox caller_box_;
  Local caller_;
  std::atomic<bool> stop_{false}, done_{true}, quit_{false};
  std::atomic<int> engaged_{0};  // workers that have taken a task and not yet handed on its successors

  std::mutex clock_mutex_;
  std::vector<Due> due_;  // a heap, earliest on top

  std::mutex outbox_mutex_;
  std::vector<Outgoing> outbox_, sending_;
  std::vector<Outgoing> held_;                      // kept until the accelerator has finished the task
  std::vector<int64_t> arrived_;                    // tokens from the last progress()
  std::vector<int32_t> sends_under_way_, awaited_;  // kSends and arrivals that the transport is handling
  bool ranks_lost_ = false, alarmed_ = false;
  int32_t end_tag_ = 1;  // slot 0's tag for end messages; the next slots' follow

  // Intake of several ranks; only run()'s thread uses these, except closing_.
  CancelToken intake_stop_;
  std::atomic<bool> closing_{false};
  int running_ = 0;             // slots with a request
  int slots_closed_ = 0;        // on ranks other than 0: slots that get no more requests
  int64_t called_ns_ = 0;       // when rank 0 called the others; 0: not yet
  std::vector<bool> answered_;  // by rank

  std::mutex arbiter_mutex_;
  std::vector<Waiting> waiting_;          // sorted
  std::vector<uint8_t> busy_, reserved_;  // per resource
  std::vector<int32_t> reserved_list_;

  std::mutex stream_mutex_;
  const StreamOptions* stream_ = nullptr;
  int64_t stream_begin_ns_ = 0, issued_ = 0;
  int active_ = 0;
  std::vector<double> latencies_us_;
  std::optional<Error> error_;

  std::vector<std::atomic<int64_t>> pool_used_, pool_peak_;
};

}  // namespace heddle
