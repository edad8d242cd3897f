#include "heddle/base/simulation.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "heddle/base/sync.h"

#if defined(HEDDLE_ADDRESS_SANITIZER)
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#elif defined(HEDDLE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace heddle {
namespace {

constexpr size_t kFibreStack = size_t{4} << 20;  // the system gives memory for what is touched
constexpr int64_t kStepNs = 20;                  // code takes time
constexpr double kEarlyEnds = .01;  // waits that end without a notification, as condition variables may
constexpr int64_t kEarlyEndNs = 100'000;
constexpr int64_t kWallBegin = 1'700'000'000'000'000'000;

#if defined(HEDDLE_ADDRESS_SANITIZER)
// The sanitizer's swapcontext() clears what it knows of the whole stack at each switch. That takes long and hides
// errors, and the announcements of switches make it needless: this is the system's own.
int swap_contexts(ucontext_t* from, const ucontext_t* to) {
  using Swap = int (*)(ucontext_t*, const ucontext_t*);
  static void* const library = ::dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  static const auto swap =
      reinterpret_cast<Swap>(library != nullptr ? ::dlsym(library, "swapcontext") : nullptr);
  return swap != nullptr ? swap(from, to) : ::swapcontext(from, to);
}
#else
int swap_contexts(ucontext_t* from, const ucontext_t* to) { return ::swapcontext(from, to); }
#endif

// Stacks that no fibre has. A thread keeps some for its next simulation: making them takes longer than a short run.
struct FreeStacks {
  std::vector<std::byte*> stacks;
  ~FreeStacks() { shrink(0); }
  void shrink(size_t most) {
    for (; stacks.size() > most; stacks.pop_back()) ::munmap(stacks.back(), kFibreStack);
  }
};
constexpr size_t kKeptStacks = 64;
thread_local FreeStacks free_stacks;

}  // namespace

class Simulation::System final : public internal::SimulatedSystem {
 public:
  struct Fibre {
    ucontext_t context = {};
    std::byte* stack = nullptr;  // null: the system's
    std::function<void()> run;
    uint64_t id = 0;
    Simulation::Process process = 0;
    const void* place = nullptr;  // that it waits at
    int64_t until = 0;            // it may go on then; with a place, when it is woken, too
    int64_t held_until = 0;       // but not before
    uint64_t places_to_hold = 0;  // places that it passes until it is held up; 0: it is not
    int64_t hold_until = 0;       // then
    bool finished = false;
#if defined(HEDDLE_ADDRESS_SANITIZER)
    void* fake_stack = nullptr;
#elif defined(HEDDLE_THREAD_SANITIZER)
    void* tsan = nullptr;
#endif
  };

  explicit System(const ThreadSimulationOptions& options)
      : options_(options), choices_(options.seed), random_(options.seed ^ 0x5eed) {
    processes_.push_back({"test"});
  }

  ~System() override { free_stacks.shrink(kKeptStacks); }

  Status run(Simulation& owner, std::function<void()> first) {
    owner_ = &owner;
    auto* const before = std::exchange(internal::simulated, this);
    create(0, std::move(first));
    current_ = &outer_;
#if defined(HEDDLE_THREAD_SANITIZER)
    outer_.tsan = __tsan_get_current_fiber();
#endif
    switch_to(*choose());
    internal::simulated = before;
    if (!failure_.empty()) {
      keep_for_ever();
      return Error(Code::kVerificationFailed, failure_);
    }
    return {};
  }

  // SimulatedSystem:
  void pass() override {
    if (looking_) return;
    if (current_->places_to_hold > 0) {
      --current_->places_to_hold;
      if (current_->places_to_hold == 0) {
        current_->held_until = current_->hold_until;
        return yield();
      }
    }
    if (stall_chance_ > 0 && choices_.chance(stall_chance_)) {
      current_->until = now_ + static_cast<int64_t>(choices_.unit() * static_cast<double>(longest_stall_));
      return yield();
    }
    if (choices_.chance(options_.switching)) yield();
  }
  void wait(const void* place, int64_t until) override {
    // No std::exception, which the code that is looked at might catch. NOLINTNEXTLINE(bugprone-std-exception-baseclass)
    if (looking_) throw Busy();
    current_->place = place;
    current_->until = choices_.chance(kEarlyEnds) ? std::min(until, now_ + kEarlyEndNs) : until;
    yield();
  }
  void wake(const void* place, bool all) override {
    if (looking_) return;
    if (all) {
      for (auto* f : live_)
        if (f->place == place) set_ready(*f);
      return;
    }
    ready_.clear();
    for (auto* f : live_)
      if (f->place == place) ready_.push_back(f);
    if (!ready_.empty()) set_ready(*ready_[choices_.below(ready_.size())]);
  }
  int64_t now_ns() override { return now_; }
  int64_t wall_ns() override { return kWallBegin + now_ + processes_[current_->process].wall_offset; }
  uint64_t start(std::function<void()> run) override { return create(current_->process, std::move(run)); }
  void join(uint64_t thread) override {
    Fibre* const other = fibres_[thread - 1].get();
    while (!other->finished) wait(other, internal::kEver);
  }

  struct Busy {};  // a look comes to a lock that a thread has

  [[noreturn]] void fail(const std::string& why) {
    looking_ = false;
    failure_ = why;
    switch_to(outer_);
    std::abort();
  }

  bool look(const std::function<void()>& read) {
    struct Looks {
      bool& on;
      ~Looks() { on = false; }
    } const looks{looking_};
    looking_ = true;
    try {
      read();
    } catch (const Busy&) {
      return false;
    }
    return true;
  }

  uint64_t create(Process process, std::function<void()> run) {
    if (live_.size() >= options_.most_threads)
      fail("more than " + std::to_string(options_.most_threads) + " threads");
    auto& f = *fibres_.emplace_back(std::make_unique<Fibre>());
    f.id = fibres_.size();
    f.run = std::move(run);
    f.process = process;
    auto& free = free_stacks.stacks;
    if (free.empty()) {
      void* const memory = ::mmap(nullptr, kFibreStack, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      ::mprotect(memory, 4096, PROT_NONE);  // an overflow ends the program instead of changing another stack
      free.push_back(static_cast<std::byte*>(memory));
    }
    f.stack = free.back();
    free.pop_back();
#if defined(HEDDLE_ADDRESS_SANITIZER)
    // The last functions of the fibre before have not returned.
    constexpr size_t kLastFrames = size_t{64} << 10;
    ASAN_UNPOISON_MEMORY_REGION(f.stack + kFibreStack - kLastFrames, kLastFrames);
#endif
    ::getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = kFibreStack;
    f.context.uc_link = nullptr;
    ::makecontext(&f.context, &System::enter, 0);
#if defined(HEDDLE_THREAD_SANITIZER)
    f.tsan = __tsan_create_fiber(0);
#endif
    live_.push_back(&f);
    return f.id;
  }

  struct ProcessState {
    std::string name;
    int64_t frozen_until = 0;
    int64_t wall_offset = 0;
  };

  void set_ready(Fibre& f) {
    f.place = nullptr;
    f.until = 0;
  }

  static void enter() {
    auto* const self = static_cast<System*>(internal::simulated);
    self->arrived();
    self->current_->run();
    self->leave();
  }

  [[noreturn]] void leave() {
    Fibre* const me = current_;
    me->run = nullptr;
    me->finished = true;
    live_.erase(std::find(live_.begin(), live_.end(), me));
    wake(me, true);
    // Nothing takes it before this fibre has been left for ever.
    free_stacks.stacks.push_back(me->stack);
    switch_to(live_.empty() ? outer_ : *choose());
    std::abort();
  }

  // The threads of a failed run cannot return, so what they hold is not freed; leak checkers are shown where it is.
  void keep_for_ever() {
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::unique_ptr<Fibre>>;
    const std::lock_guard lock(mutex);
    for (auto& f : fibres_) {
#if defined(HEDDLE_ADDRESS_SANITIZER)
      if (!f->finished) __lsan_register_root_region(f->stack, kFibreStack);
#endif
      kept->push_back(std::move(f));
    }
  }

  void yield() {
    Fibre* const next = choose();
    if (next != current_) switch_to(*next);
  }

  // Who goes on.
  Fibre* choose() {
    if (++steps_ > options_.most_steps) fail("the run does not end: too many steps; " + who_waits());
    now_ += kStepNs;
    for (;;) {
      ready_.clear();
      int64_t next = internal::kEver;
      for (auto* f : live_) {
        const int64_t at = std::max({f->until, f->held_until, processes_[f->process].frozen_until});
        if (at <= now_) {
          ready_.push_back(f);
        } else {
          next = std::min(next, at);
        }
      }
      if (!ready_.empty()) break;
      if (next == internal::kEver) fail("no thread can go on: " + who_waits());
      if (next > options_.longest_ns)
        fail("the run is stuck after " + std::to_string(now_ / 1'000'000) + " simulated ms: " + who_waits());
      now_ = next;
    }
    Fibre* const chosen = ready_[ready_.size() == 1 ? 0 : choices_.below(ready_.size())];
    set_ready(*chosen);
    mix(chosen->id);
    mix(static_cast<uint64_t>(now_));
    return chosen;
  }

  std::string who_waits() const {
    std::string text = "threads wait:";
    for (const auto* f : live_) text += " " + processes_[f->process].name + "." + std::to_string(f->id);
    return text.substr(0, 400);
  }

  void mix(uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3 + (digest_ >> 29); }

  void switch_to(Fibre& next) {
    Fibre* const last = std::exchange(current_, &next);
#if defined(HEDDLE_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(last->finished ? nullptr : &last->fake_stack,
                                   next.stack != nullptr ? next.stack : outer_stack_,
                                   next.stack != nullptr ? kFibreStack : outer_size_);
#elif defined(HEDDLE_THREAD_SANITIZER)
    __tsan_switch_to_fiber(next.tsan, 0);
#endif
    swap_contexts(&last->context, &next.context);
    arrived();
  }

  // The first thing on the stack of the fibre that goes on.
  void arrived() {
#if defined(HEDDLE_ADDRESS_SANITIZER)
    const void* bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(current_->fake_stack, &bottom, &size);
    if (outer_stack_ == nullptr) {
      outer_stack_ = bottom;
      outer_size_ = size;
    }
#endif
  }

  const ThreadSimulationOptions options_;
  Simulation* owner_ = nullptr;
  Random choices_, random_;
  int64_t now_ = 1'000'000'000;
  uint64_t steps_ = 0, digest_ = 0xcbf29ce484222325;
  double stall_chance_ = 0;
  int64_t longest_stall_ = 0;
  bool looking_ = false;
  std::string failure_;
  std::vector<ProcessState> processes_;
  std::vector<std::unique_ptr<Fibre>> fibres_;  // [id - 1]
  std::vector<Fibre*> live_, ready_;
  Fibre outer_;
  Fibre* current_ = nullptr;
  const void* outer_stack_ = nullptr;
  size_t outer_size_ = 0;
};

Simulation::Simulation(const ThreadSimulationOptions& options) : system_(std::make_unique<System>(options)) {}
Simulation::~Simulation() = default;

Status Simulation::run(std::function<void()> first) { return system_->run(*this, std::move(first)); }

Simulation& Simulation::current() { return *static_cast<System*>(internal::simulated)->owner_; }

Random& Simulation::random() { return system_->random_; }
int64_t Simulation::now() const { return system_->now_; }

void Simulation::note(const std::string& text) {
  for (const char c : text) system_->mix(static_cast<unsigned char>(c));
  if (system_->options_.trace) system_->options_.trace(system_->now_, text);
}

uint64_t Simulation::digest() const { return system_->digest_; }
uint64_t Simulation::steps() const { return system_->steps_; }
size_t Simulation::threads() const { return system_->live_.size(); }
size_t Simulation::threads(Process process) const {
  return static_cast<size_t>(
      std::ranges::count_if(system_->live_, [process](const auto* f) { return f->process == process; }));
}
void Simulation::fail(const std::string& why) { system_->fail(why); }

Simulation::Process Simulation::new_process(const std::string& name) {
  system_->processes_.push_back({name});
  return static_cast<Process>(system_->processes_.size() - 1);
}
Simulation::Process Simulation::process() const { return system_->current_->process; }
void Simulation::start(Process process, std::function<void()> run) {
  system_->create(process, std::move(run));
}
void Simulation::freeze(Process process, int64_t until) { system_->processes_[process].frozen_until = until; }
void Simulation::hold_up(Process process, int64_t until) {
  std::vector<System::Fibre*> threads;
  for (auto* f : system_->live_)
    if (f->process == process) threads.push_back(f);
  if (!threads.empty()) threads[random().below(threads.size())]->held_until = until;
}
void Simulation::hold_up_here(uint64_t places, int64_t until) {
  system_->current_->places_to_hold = places;
  system_->current_->hold_until = until;
}
void Simulation::end_hold_ups() {
  for (auto* f : system_->live_) {
    f->held_until = f->hold_until = 0;
    f->places_to_hold = 0;
  }
}
bool Simulation::frozen(Process process) const {
  return system_->processes_[process].frozen_until > system_->now_;
}
void Simulation::set_wall_offset(Process process, int64_t ns) {
  system_->processes_[process].wall_offset = ns;
}
void Simulation::set_stalls(double chance, int64_t longest_ns) {
  system_->stall_chance_ = chance;
  system_->longest_stall_ = longest_ns;
}
void Simulation::wait(const void* place, int64_t until) { system_->wait(place, until); }
void Simulation::wake(const void* place) { system_->wake(place, true); }
bool Simulation::look(const std::function<void()>& read) { return system_->look(read); }

}  // namespace heddle
