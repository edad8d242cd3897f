// Memory for what comes and goes while one stream works: parts of blocks that are taken once and kept.
// Whoever gets a part that another gave back uses it after that one, because the stream works in order.
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

  // Makes sure that this much is free in one piece, by taking one more block where it is not.
  Status reserve(int64_t bytes);
  // The smallest free part that fits, aligned to kDeviceAlignment; takes another block from the source where
  // there is none. O(free parts).
  Result<std::byte*> take(int64_t bytes);
  // False where it is not from here.
  bool give_back(std::byte* part);

  int64_t block_bytes() const;  // taken from the source
  int64_t peak_bytes() const;   // the most that was in use at once
  int blocks() const;

 private:
  Status add_block(int64_t bytes);

  Source source_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<std::byte[]>> blocks_;
  std::map<std::byte*, std::pair<int64_t, size_t>> free_;  // part -> bytes, block
  std::map<std::byte*, std::pair<int64_t, size_t>> used_;
  int64_t block_bytes_ = 0, used_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace heddle
