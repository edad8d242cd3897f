// Replaces the program's operator new and delete. C's malloc stays as it is, and everything that uses it:
// OpenVINO loads libraries that are bound to libc's own.
#include "start_heap.h"

#if defined(__has_feature)
#define HEDDLE_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_SANITIZED 1
#else
#define HEDDLE_SANITIZED 0
#endif

#if HEDDLE_SANITIZED

bool heddle::cli::use_start_heap() { return false; }

#else

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

namespace heddle::cli {
namespace {

constexpr size_t kGrain = 16;                  // what malloc aligns to, too
constexpr size_t kClasses = 64;                // sizes of 1 to 64 grains
constexpr size_t kSpan = 16 << 10;             // of one class each
constexpr size_t kRegion = size_t{512} << 20;  // what is more is malloc's
constexpr size_t kSpans = kRegion / kSpan;

// Written while there is one thread. A size of 0: not in use, and no address is inside.
char* region_begin = nullptr;
size_t region_size = 0;
uint8_t* class_of_span = nullptr;
std::atomic<size_t> spans_taken{0};

// Of one size. A freed object's first word is the next one; the second word of a batch's first object is the
// next batch.
struct Class {
  void** freed;
  size_t count;  // of them, but for those that another thread has handed on
  char* next;    // of the thread's latest span
  char* end;
};
using Classes = std::array<Class, kClasses + 1>;
// A thread that deletes more than it makes hands what it has kept on to those that make more.
constexpr size_t kBatchBytes = 32 << 10;
// Without a constructor, so that both can be used from a thread's first to its last instruction.
thread_local Classes classes;
thread_local bool known;  // its end is told

// What ended threads have left of their spans: threads come and go with each segment that is compiled.
struct Left {
  Classes classes;
  Left* next;
};
std::mutex shared_mutex;
Left* left_behind = nullptr;
std::array<void**, kClasses + 1> batches;
std::array<std::atomic<int>, kClasses + 1> batch_counts;  // to look at without the mutex
pthread_key_t end_of_thread;

// Under the mutex.
void hand_on(Class& own, size_t grains) {
  if (own.freed == nullptr) return;
  own.freed[1] = batches[grains];
  batches[grains] = own.freed;
  batch_counts[grains].fetch_add(1, std::memory_order_relaxed);
  own.freed = nullptr;
  own.count = 0;
}

void leave(void*) {
  known = false;  // for what is still deleted after this
  auto* const left = static_cast<Left*>(std::malloc(sizeof(Left)));
  const std::lock_guard lock(shared_mutex);
  for (size_t grains = 1; grains <= kClasses; ++grains) hand_on(classes[grains], grains);
  if (left == nullptr) return;
  left->classes = classes;
  classes = {};
  left->next = left_behind;
  left_behind = left;
}

// A thread's first need of the heap: it goes on with what one before it has left.
void enter() {
  known = true;
  pthread_setspecific(end_of_thread, &known);  // not null, or nobody calls leave()
  Left* left = nullptr;
  {
    const std::lock_guard lock(shared_mutex);
    left = left_behind;
    if (left != nullptr) left_behind = left->next;
  }
  if (left == nullptr) return;
  classes = left->classes;
  std::free(left);
}

void* map(size_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Null: nobody has handed any on.
void** batch_of(size_t grains) {
  if (batch_counts[grains].load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(shared_mutex);
  void** const batch = batches[grains];
  if (batch == nullptr) return nullptr;
  batches[grains] = static_cast<void**>(batch[1]);
  batch_counts[grains].fetch_sub(1, std::memory_order_relaxed);
  return batch;
}

// Null: the region is used up.
void* from_span(Class& own, size_t grains) {
  const size_t bytes = grains * kGrain;
  if (own.next == nullptr || own.next + bytes > own.end) {
    const size_t span = spans_taken.fetch_add(1, std::memory_order_relaxed);
    if (span >= kSpans) return nullptr;
    class_of_span[span] = static_cast<uint8_t>(grains);
    own.next = region_begin + span * kSpan;
    own.end = own.next + kSpan;
  }
  void* const object = own.next;
  own.next += bytes;
  return object;
}

void* allocate(size_t bytes) {
  if (bytes <= kClasses * kGrain && region_size != 0) {
    if (!known) enter();
    const size_t grains = bytes == 0 ? 1 : (bytes + kGrain - 1) / kGrain;
    Class& own = classes[grains];
    if (own.freed == nullptr) own.freed = batch_of(grains);
    if (void** const object = own.freed) {
      own.freed = static_cast<void**>(*object);
      own.count -= own.count > 0;  // a batch's are not counted
      return object;
    }
    if (void* const object = from_span(own, grains)) return object;
  }
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void release(void* object) {
  // One comparison: addresses before the region wrap around.
  const size_t at = reinterpret_cast<uintptr_t>(object) - reinterpret_cast<uintptr_t>(region_begin);
  if (at >= region_size) return std::free(object);
  if (!known) enter();
  const size_t grains = class_of_span[at / kSpan];
  Class& own = classes[grains];
  auto* const freed = static_cast<void**>(object);
  *freed = own.freed;
  own.freed = freed;
  if (++own.count * grains * kGrain < kBatchBytes) return;
  const std::lock_guard lock(shared_mutex);
  hand_on(own, grains);
}

bool is_limited() {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return true;
  }
  return false;
}

// A process that is forked off (a trial of an import) has the heap, and perhaps only one of its threads.
void lock_shared() { shared_mutex.lock(); }
void unlock_shared() { shared_mutex.unlock(); }

}  // namespace

bool use_start_heap() {
  if (region_size != 0) return true;
  if (is_limited()) return false;
  if (pthread_key_create(&end_of_thread, leave) != 0) return false;
  void* const spans = map(kSpans);
  void* const region = map(kRegion);
  if (spans == nullptr || region == nullptr ||
      ::pthread_atfork(lock_shared, unlock_shared, unlock_shared) != 0) {
    if (spans != nullptr) ::munmap(spans, kSpans);
    if (region != nullptr) ::munmap(region, kRegion);
    pthread_key_delete(end_of_thread);
    return false;
  }
  class_of_span = static_cast<uint8_t*>(spans);
  region_begin = static_cast<char*>(region);
  region_size = kRegion;
  return true;
}

}  // namespace heddle::cli

// The other forms of the standard library call these.
void* operator new(size_t bytes) {
  while (true) {
    if (void* const object = heddle::cli::allocate(bytes)) return object;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* object) noexcept { heddle::cli::release(object); }
void operator delete(void* object, size_t) noexcept { heddle::cli::release(object); }

#endif
