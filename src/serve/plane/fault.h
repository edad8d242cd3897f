// Places of the server where a test lets things go wrong. Nothing but a test sets a fault; without one a
// place costs the reading of one atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "heddle/base/status.h"

namespace heddle {

// What "fail" does there, and "kill" where that is something else.
#define HEDDLE_FAULT_POINTS(X)                                                                    \
  X(kAccept, "http.accept", "a new connection is closed")                                         \
  X(kRead, "http.read", "the connection breaks while a request is read")                          \
  X(kHead, "http.head", "the request is refused with 503 before its body is read")                \
  X(kBody, "http.body", "there is no memory for the body: 503")                                   \
  X(kHandler, "http.handler", "the handler throws: 500")                                          \
  X(kWrite, "http.write", "the connection breaks while the answer is sent")                       \
  X(kReply, "http.reply", "the answer is lost on its way to the connection: 500")                 \
  X(kParse, "infer.parse", "the request's message cannot be read: 500")                           \
  X(kAdmit, "infer.admit", "the service refuses the request: 500")                                \
  X(kOutputs, "infer.outputs", "allocating the outputs throws: 500")                              \
  X(kAnswer, "infer.answer", "encoding the answer throws: 500")                                   \
  X(kSubmit, "plane.submit", "the data plane is full: 503")                                       \
  X(kDecide, "plane.decide", "only delay: the lock is held longer; the same for all others")      \
  X(kHandOver, "plane.hand_over", "the task does not reach its device's runner: its batch fails") \
  X(kRun, "device.run", "the run ends with an error; kill: the runner throws")                    \
  X(kRan, "device.ran", "an error after the outputs were written; kill: the runner throws")       \
  X(kReport, "device.report", "only delay: a result is reported late")                            \
  X(kClock, "clock.turn", "only delay: the clock's thread comes late")                            \
  X(kPlan, "fleet.plan", "planning again fails: the old plan stays in use")                       \
  X(kCutOver, "fleet.cut_over", "the new plan cannot be started: the old one stays in use")       \
  X(kDrain, "fleet.drain", "only delay: draining takes longer")                                   \
  X(kLoad, "repository.load", "a model cannot be read: the others are served on")                 \
  X(kCompile, "repository.compile", "a model cannot be compiled: the others go on")

enum class FaultPoint : uint8_t {
#define HEDDLE_FAULT_NAME(point, name, what) point,
  HEDDLE_FAULT_POINTS(HEDDLE_FAULT_NAME)
#undef HEDDLE_FAULT_NAME
};

enum class FaultAction : uint8_t { kDelay, kFail, kKill };

struct Fault {
  FaultPoint point = FaultPoint::kAccept;
  FaultAction action = FaultAction::kFail;
  uint32_t every = 1;     // the fault hits the last of this many passes
  uint32_t delay_us = 0;  // of kDelay
};

// One fault at a time, for the whole process. Thread-safe.
void set_fault(const Fault& fault);
void clear_fault();
uint64_t fault_hits();  // since set_fault()

namespace internal {
extern std::atomic<int> g_fault_point;  // -1: none
bool pass_fault(FaultPoint point, bool may_throw);
}  // namespace internal

// Called at a fault's place: sleeps if a delay is set; true if the caller must fail as the list above says.
inline bool fault_at(FaultPoint point) {
  return internal::g_fault_point.load(std::memory_order_relaxed) == static_cast<int>(point) &&
         internal::pass_fault(point, false);
}
// The same, and throws std::runtime_error for "kill".
inline bool fault_or_throw_at(FaultPoint point) {
  return internal::g_fault_point.load(std::memory_order_relaxed) == static_cast<int>(point) &&
         internal::pass_fault(point, true);
}
inline Error fault_error() { return internal_error("a fault that a test has set"); }

}  // namespace heddle
