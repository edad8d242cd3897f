// A pool of objects with small, reusable numbers. It avoids allocations while a data plane runs: an object
// keeps its contents (such as its vectors' memory) from one user to the next.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle {

template <class T>
class Slots {
 public:
  // Returns the number given back last, else a new one. References to objects become invalid.
  uint32_t take() {
    if (free_.empty()) {
      objects_.emplace_back();
      return static_cast<uint32_t>(objects_.size() - 1);
    }
    const uint32_t id = free_.back();
    free_.pop_back();
    return id;
  }
  // `id` must be taken.
  void give_back(uint32_t id) { free_.push_back(id); }

  T& operator[](uint32_t id) { return objects_[id]; }
  const T& operator[](uint32_t id) const { return objects_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(objects_.size()); }  // all numbers, taken or not
  uint32_t taken() const { return static_cast<uint32_t>(objects_.size() - free_.size()); }

 private:
  std::vector<T> objects_;
  std::vector<uint32_t> free_;
};

}  // namespace heddle
