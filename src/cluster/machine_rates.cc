// Each rate is the best of a few short runs, because noise only slows a run down.
#include "machine_rates.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "heddle/base/quantiles.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Ten independent chains hide the latency of fused multiply-adds (4 cycles on 2 units) and fit in 16
// registers.
constexpr int kChains = 10;

template <class Vector>
[[gnu::always_inline]] inline float multiply_add(int64_t steps) {
  Vector x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = Vector{} + 1.0f / static_cast<float>(c + 1);
  const Vector scale = Vector{} + 0.9999f, offset = Vector{} + 1e-4f;
  for (int64_t i = 0; i < steps; ++i) {
    for (int c = 0; c < kChains; ++c) x[c] = x[c] * scale + offset;
  }
  Vector sum = x[0];
  for (int c = 1; c < kChains; ++c) sum += x[c];
  return sum[0];
}

using Float4 = float __attribute__((vector_size(16)));
float multiply_add_base(int64_t steps) { return multiply_add<Float4>(steps); }
#if defined(__x86_64__)
using Float8 = float __attribute__((vector_size(32)));
using Float16 = float __attribute__((vector_size(64)));
[[gnu::target("avx2,fma")]] float multiply_add_avx2(int64_t steps) { return multiply_add<Float8>(steps); }
[[gnu::target("avx512f")]] float multiply_add_avx512(int64_t steps) { return multiply_add<Float16>(steps); }
#endif

struct FlopKernel {
  float (*run)(int64_t);
  int lanes;
};

FlopKernel best_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_avx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_add_avx2, 8};
#endif
  return {multiply_add_base, 4};
}

// Consumes loop results, so that the compiler cannot remove the loops.
std::atomic<uint64_t> sink{0};

void pin_to(int core) {
  if (core < 0 || core >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // if refused, runs unpinned
}

double flops_for(double seconds) {
  const FlopKernel kernel = best_kernel();
  constexpr int64_t kSteps = 20'000;
  const double work = 2.0 * kChains * kernel.lanes * kSteps;
  double best = 0;
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    const auto begin = Clock::now();
    sink += static_cast<uint64_t>(kernel.run(kSteps));
    best = std::max(best, work / seconds_since(begin));
  }
  return best;
}

// Larger than one core's share of the last-level cache, small enough for any machine.
constexpr size_t kReadWords = (size_t{24} << 20) / sizeof(uint64_t);

double read_rate_for(const std::vector<uint64_t>& buffer, double seconds) {
  double best = 0;
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    const auto begin = Clock::now();
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 8 <= buffer.size(); i += 8) {
      for (size_t k = 0; k < 8; ++k) sums[k] += buffer[i + k];
    }
    for (const uint64_t s : sums) sink += s;
    best = std::max(best, static_cast<double>(buffer.size() * sizeof(uint64_t)) / seconds_since(begin));
  }
  return best;
}

// The sum of `work()` over all cores, run concurrently.
template <class Work>
double on_each(std::span<const int> cores, Work work) {
  std::vector<double> rates(cores.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] {
      pin_to(cores[i]);
      rates[i] = work();
    });
  }
  double total = 0;
  for (size_t i = 0; i < cores.size(); ++i) {
    threads[i].join();
    total += rates[i];
  }
  return total;
}

// Two threads alternate through a mutex and a condition variable, as the runtime's queues do.
double handover(std::span<const int> cores, double seconds) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  bool stop = false;
  std::thread partner([&] {
    pin_to(cores.back());
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || turn == 1; });
      if (stop) return;
      turn = 0;
      changed.notify_one();
    }
  });
  std::vector<double> round_trips;
  std::thread driver([&] {
    pin_to(cores.front());
    for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
      const auto begin = Clock::now();
      std::unique_lock lock(mutex);
      turn = 1;
      changed.notify_one();
      changed.wait(lock, [&] { return turn == 0; });
      round_trips.push_back(seconds_since(begin) * 1e6);
    }
    const std::lock_guard lock(mutex);
    stop = true;
    changed.notify_one();
  });
  driver.join();
  partner.join();
  return median_us(round_trips) / 2;
}

constexpr double kSliceSeconds = 0.03;

}  // namespace

MachineRates measure_machine(std::span<const int> cores) {
  MachineRates rates;
  const auto first = cores.first(1);
  const std::vector<uint64_t> buffer(kReadWords, 1);
  const auto flops = [] { return flops_for(kSliceSeconds); };
  const auto read = [&] { return read_rate_for(buffer, kSliceSeconds); };
  rates.flops_one = on_each(first, flops);
  rates.flops_all = cores.size() > 1 ? on_each(cores, flops) : rates.flops_one;
  rates.read_bytes_per_s_one = on_each(first, read);
  rates.read_bytes_per_s_all = cores.size() > 1 ? on_each(cores, read) : rates.read_bytes_per_s_one;
  rates.handover_us = handover(cores, kSliceSeconds);
  return rates;
}

}  // namespace heddle
