#include "workspace.h"

#include <algorithm>
#include <iterator>

namespace heddle {
namespace {

// Small requests beyond the reserved memory share a block.
constexpr int64_t kLeastBlockBytes = int64_t{2} << 20;

int64_t rounded_up(int64_t bytes) { return device_aligned(std::max<int64_t>(bytes, 1)); }

}  // namespace

Status Workspace::add_block(int64_t bytes) {
  HEDDLE_ASSIGN_OR_RETURN(auto block, source_(bytes));
  free_[block.get()] = {bytes, blocks_.size()};
  blocks_.push_back(std::move(block));
  return {};
}

Status Workspace::reserve(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int64_t wanted = rounded_up(bytes);
  for (const auto& part : free_) {
    if (part.second.first >= wanted) return {};
  }
  return add_block(wanted);
}

Result<std::byte*> Workspace::take(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int64_t wanted = rounded_up(bytes);
  const auto smallest = [&] {
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second.first >= wanted && (best == free_.end() || it->second.first < best->second.first))
        best = it;
    }
    return best;
  };
  auto found = smallest();
  if (found == free_.end()) {
    HEDDLE_RETURN_IF_ERROR(add_block(std::max(wanted, kLeastBlockBytes)));
    found = smallest();
  }
  std::byte* part = found->first;
  const auto [size, block] = found->second;
  free_.erase(found);
  if (size > wanted) free_[part + wanted] = {size - wanted, block};
  used_[part] = {wanted, block};
  return part;
}

bool Workspace::give_back(std::byte* part) {
  const std::lock_guard lock(mutex_);
  const auto used = used_.find(part);
  if (used == used_.end()) return false;
  auto [size, block] = used->second;
  used_.erase(used);
  auto next = free_.lower_bound(part);
  if (next != free_.end() && next->first == part + size && next->second.second == block) {
    size += next->second.first;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.first == part && before->second.second == block) {
      before->second.first += size;
      return true;
    }
  }
  free_[part] = {size, block};
  return true;
}

}  // namespace heddle
