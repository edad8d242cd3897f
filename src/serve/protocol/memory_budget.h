// Memory that requests take together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace heddle {

// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t most = SIZE_MAX) : most_(most) {}
  void set_most(size_t most) { most_ = most; }
  size_t most() const { return most_; }
  size_t taken() const { return taken_; }

  // False: so much is not left.
  bool take(size_t bytes) {
    size_t now = taken_;
    do {
      const size_t most = most_;
      if (bytes > most || now > most - bytes) return false;
    } while (!taken_.compare_exchange_weak(now, now + bytes));
    return true;
  }
  // What is there already, whether or not it was left.
  void count(size_t bytes) { taken_ += bytes; }
  void give_back(size_t bytes) { taken_ -= bytes; }

 private:
  std::atomic<size_t> most_, taken_{0};
};

// What one owner takes, until it is gone.
class MemoryCharge {
 public:
  explicit MemoryCharge(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  ~MemoryCharge() { budget_->give_back(bytes_); }
  MemoryCharge(const MemoryCharge&) = delete;
  MemoryCharge& operator=(const MemoryCharge&) = delete;

  bool take(size_t bytes) {
    if (!budget_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  void count(size_t bytes) {
    budget_->count(bytes);
    bytes_ += bytes;
  }
  // Gives back what is above `bytes`.
  void keep(size_t bytes) {
    if (bytes >= bytes_) return;
    budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  const std::shared_ptr<MemoryBudget> budget_;
  size_t bytes_ = 0;
};

}  // namespace heddle
