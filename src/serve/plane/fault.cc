#include "fault.h"

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace heddle {
namespace {

std::mutex g_fault_mutex;  // guards the two below
Fault g_fault;
uint64_t g_passes = 0;
std::atomic<uint64_t> g_hits{0};

}  // namespace

namespace internal {

std::atomic<int> g_fault_point{-1};

bool pass_fault(FaultPoint point, bool may_throw) {
  Fault fault;
  {
    const std::lock_guard lock(g_fault_mutex);
    if (g_fault_point.load() != static_cast<int>(point) || ++g_passes % g_fault.every != 0) return false;
    fault = g_fault;
  }
  g_hits.fetch_add(1);
  if (fault.action == FaultAction::kDelay) {
    std::this_thread::sleep_for(std::chrono::microseconds(fault.delay_us));
    return false;
  }
  if (may_throw && fault.action == FaultAction::kKill)
    throw std::runtime_error("a fault that a test has set");
  return true;
}

}  // namespace internal

void set_fault(const Fault& fault) {
  const std::lock_guard lock(g_fault_mutex);
  g_fault = fault;
  g_passes = 0;
  g_hits = 0;
  internal::g_fault_point = static_cast<int>(fault.point);
}

void clear_fault() { internal::g_fault_point = -1; }

uint64_t fault_hits() { return g_hits; }

}  // namespace heddle
