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

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace heddle::cli {
namespace {

constexpr size_t kGrain = 16;       // what malloc aligns to, too
constexpr size_t kClasses = 64;     // sizes of 1 to 64 grains
constexpr size_t kSpan = 16 << 10;  // of one class each
constexpr size_t kRegion = size_t{4} << 30;
constexpr size_t kSpans = kRegion / kSpan;

// Written while there is one thread. A size of 0: not in use, and no address is inside.
char* region_begin = nullptr;
size_t region_size = 0;
uint8_t* class_of_span = nullptr;
std::atomic<size_t> spans_taken{0};

struct Class {
  void* freed;  // each holds the next
  char* next;   // of the thread's latest span
  char* end;
};
// Without a constructor, so that it can be used from a thread's first to its last instruction.
thread_local std::array<Class, kClasses + 1> classes;

void* map(size_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
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
    const size_t grains = bytes == 0 ? 1 : (bytes + kGrain - 1) / kGrain;
    Class& own = classes[grains];
    if (void* const object = own.freed) {
      own.freed = *static_cast<void**>(object);
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
  Class& own = classes[class_of_span[at / kSpan]];
  *static_cast<void**>(object) = own.freed;
  own.freed = object;
}

}  // namespace

bool use_start_heap() {
  if (region_size != 0) return true;
  void* const spans = map(kSpans);
  void* const region = map(kRegion);
  if (spans == nullptr || region == nullptr) {
    if (spans != nullptr) ::munmap(spans, kSpans);
    if (region != nullptr) ::munmap(region, kRegion);
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
