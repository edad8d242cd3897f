// Communication between the ranks of one run outside of requests: texts, errors, clocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/runtime/transport.h"

namespace heddle {

// Except for send_text() and receive_text(), all ranks make every call, in the same order, while no message
// of a plan is in flight. An error means that communication has failed for good.
class RankGroup {
 public:
  // The transport must outlive the group.
  explicit RankGroup(Transport& transport) : transport_(transport) {}

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  Transport& transport() { return transport_; }
  // "rank 2 (host)", of this rank.
  std::string name() const;

  // These two are calls of one pair of ranks.
  Status send_text(int to, const std::string& text);
  Result<std::string> receive_text(int from);
  // Sends rank 0's text to all ranks.
  Result<std::string> broadcast(std::string text);
  // Sends rank 0's bytes to all ranks; the size is the same on each.
  Status broadcast_bytes(std::span<std::byte> memory);
  // Sends bytes from `from` to rank 0; other ranks do nothing.
  Status bring_bytes(int from, std::span<std::byte> memory);
  // On rank 0: the texts of all ranks, by rank; elsewhere empty.
  Result<std::vector<std::string>> gather(std::string text);
  // On every rank: the texts of all ranks, by rank.
  Result<std::vector<std::string>> exchange(std::string text);
  // Ok if every rank is; otherwise all get the error of the lowest failed rank, with its name unless it is 0.
  // Cancellations count only if nothing else failed.
  Status agree(const Status& own);
  // Rank 0's clock minus this rank's now_ns(). Cristian's method: half of the shortest of `rounds` round
  // trips, which also bounds the error.
  Result<int64_t> clock_offset_ns(int rounds = 16);

 private:
  Status send(int to, std::span<const std::byte> data);
  Status receive(int from, std::span<std::byte> data);
  Status wait();

  Transport& transport_;
  std::vector<int64_t> done_;
};

}  // namespace heddle
