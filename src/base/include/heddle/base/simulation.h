// Runs code that uses heddle/base/sync.h as a deterministic simulation. Its threads are fibres on one thread of the
// system, and one runs at a time. A seeded scheduler chooses who goes on at every lock, wait, notification and sleep.
// The clock stands still while a thread can go on, and jumps to the next timer when all wait. The same seed gives the
// same run as long as the code's decisions depend on nothing else: no addresses, no real clocks.
//
// Source of the idea: the simulators of FoundationDB and TigerBeetle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "heddle/base/random.h"
#include "heddle/base/status.h"

namespace heddle {

struct ThreadSimulationOptions {
  uint64_t seed = 0;
  double switching = .2;                 // the chance that another thread goes on where one could go on
  int64_t longest_ns = 600'000'000'000;  // simulated; a run that takes longer is stuck
  uint64_t most_steps = 20'000'000;      // choices of a thread; a run that needs more does not end
  size_t most_threads = 2000;            // at a time
  // Gets a line for each note(), for people; may be empty.
  std::function<void(int64_t now_ns, const std::string& line)> trace;
};

class Simulation {
 public:
  // A group of threads that a simulated process has. Threads belong to the process of the one that started them; the
  // first thread's is 0.
  using Process = uint32_t;

  explicit Simulation(const ThreadSimulationOptions& options);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Once. Runs `first` as the first thread, until it and all threads have returned. Errors: kVerificationFailed with
  // what fail() was given; threads of which none can go on; a run that does not end. After an error the threads'
  // memory is not freed.
  Status run(std::function<void()> first);

  // The simulation that runs on this thread of the system.
  static Simulation& current();

  // All that follow are for its threads alone.
  Random& random();  // for what the environment decides
  int64_t now() const;
  // Into the digest; the text may hold nothing that differs from run to run.
  void note(const std::string& text);
  // Of all choices and notes so far.
  uint64_t digest() const;
  uint64_t steps() const;
  size_t threads() const;                 // that have not returned
  size_t threads(Process process) const;  // of these
  [[noreturn]] void fail(const std::string& why);

  Process new_process(const std::string& name);
  Process process() const;  // of the thread that runs
  void start(Process process, std::function<void()> run);
  // Its threads do not go on before `until`: it is stopped, or (INT64_MAX) has crashed.
  void freeze(Process process, int64_t until);
  bool frozen(Process process) const;
  // One of its threads, which random() chooses, does not go on before `until`, as one that hangs in a system call.
  void hold_up(Process process, int64_t until);
  // The thread that calls it, at the so many-th place from here where others may go on.
  void hold_up_here(uint64_t places, int64_t until);
  void end_hold_ups();
  void set_wall_offset(Process process, int64_t ns);
  // Chance of a thread to be held up for up to `longest_ns` at a place where others may go on.
  void set_stalls(double chance, int64_t longest_ns);

  // Waiting for what has no lock: nobody else goes on between a check and wait(). `until` INT64_MAX: for ever. A wait
  // may end early.
  void wait(const void* place, int64_t until);
  void wake(const void* place);

  // Runs `read`, which changes nothing, as if in no time: no other thread goes on and no choice is made, so a check may
  // look at everything as often as it likes. False: it came to a lock that a thread has, and was given up there by an
  // exception.
  bool look(const std::function<void()>& read);

 private:
  class System;
  const std::unique_ptr<System> system_;
};

}  // namespace heddle
