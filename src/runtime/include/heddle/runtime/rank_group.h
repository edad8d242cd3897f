// What the ranks of one run tell each other between requests: texts, errors, the time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/runtime/transport.h"

namespace heddle {

// Every call but the first two is made by all ranks, in the same order, while no message of a plan is under
// way. An error means that messages do not come through any more.
class RankGroup {
 public:
  // The transport outlives the group.
  explicit RankGroup(Transport& transport) : transport_(transport) {}

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  Transport& transport() { return transport_; }
  // "rank 2 (host)", of this rank.
  std::string name() const;

  // Between two ranks only.
  Status send_text(int to, const std::string& text);
  Result<std::string> receive_text(int from);
  // Rank 0's text, for everyone.
  Result<std::string> broadcast(std::string text);
  // Rank 0's bytes, for memory of one size everywhere.
  Status broadcast_bytes(std::span<std::byte> memory);
  // From `from` to rank 0; nothing on other ranks.
  Status bring_bytes(int from, std::span<std::byte> memory);
  // On rank 0 the texts of all, by rank; elsewhere empty.
  Result<std::vector<std::string>> gather(std::string text);
  // The texts of all, by rank, for everyone.
  Result<std::vector<std::string>> exchange(std::string text);
  // Ok where every rank is; else the same error everywhere: that of the lowest rank that failed by itself
  // (what is cancelled counts only where nothing else failed), with the rank's name where it is not rank 0.
  Status agree(const Status& own);
  // What is to be added to this rank's now_ns() for rank 0's (Cristian's method: half the shortest of
  // `rounds` round trips). Wrong by at most half that round trip.
  Result<int64_t> clock_offset_ns(int rounds = 16);

 private:
  Status send(int to, std::span<const std::byte> data);
  Status receive(int from, std::span<std::byte> data);
  Status wait();

  Transport& transport_;
  std::vector<int64_t> done_;
};

}  // namespace heddle
