// Memory for temporary data of one stream: parts of blocks that are allocated once and kept. A part that was
// given back can be reused at once, because the stream executes its users in order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "heddle/runtime/stream_runtime.h"

namespace heddle {

// Thread-safe.
class Workspace {
 public:
  using Source = std::function<Result<std::shared_ptr<std::byte[]>>(int64_t bytes)>;
  explicit Workspace(Source source) : source_(std::move(source)) {}

  // Ensures that this much is free in one piece, if necessary by allocating a block.
  Status reserve(int64_t bytes);
  // The smallest free part that fits, aligned to kDeviceAlignment; allocates another block if none fits.
  // O(free parts).
  Result<std::byte*> take(int64_t bytes);
  // False if `part` is not from this workspace.
  bool give_back(std::byte* part);

 private:
  Status add_block(int64_t bytes);

  Source source_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<std::byte[]>> blocks_;
  std::map<std::byte*, std::pair<int64_t, size_t>> free_;  // part -> bytes, block
  std::map<std::byte*, std::pair<int64_t, size_t>> used_;
};

}  // namespace heddle
