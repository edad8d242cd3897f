// Splits a lane's tasks among the ranks; edges between ranks become messages.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "program.h"

namespace heddle {

// The tensor of a kSend, and its memory on both ranks.
struct Carried {
  int32_t tensor = -1;
  int32_t from_memory = 0, to_memory = 0;
};

// The tasks of all ranks; every rank has the same list.
struct WholeProgram {
  std::vector<Task> tasks;
  std::vector<std::pair<int32_t, int32_t>> edges;  // (before, after); duplicates are allowed
  std::vector<int32_t> owner;                      // [task] the rank that runs it
  std::vector<Carried> carried;                    // [task]
  std::vector<int32_t> to_rank;                    // [task] destination of a transfer between ranks, or -1
};

struct RankPart {
  std::vector<Task> tasks;          // its own tasks and arrivals, in the plan's order
  std::vector<int32_t> from_whole;  // [task of the whole] its own task; -1: on another rank
  std::vector<std::pair<int32_t, int32_t>> edges, signals;
  std::vector<Message> sends, receives;
  int32_t messages = 0;
};
// A task notifies each waiting rank once. O((tasks + edges) log edges).
RankPart part_of_rank(const WholeProgram& whole, int self);

int64_t message_bytes(const Graph& graph, const Message& message);
// 0 if no message carries a tensor.
int64_t widest_message(const Graph& graph, const Program& program);

// Represents a segment of another rank, so that its kind of task is the same on every rank.
class ElsewhereSegment final : public CompiledSegment {
 public:
  explicit ElsewhereSegment(bool timed) : timed_(timed) {}
  Status bind(int, std::span<const TensorView>, std::span<const TensorView>) override { return {}; }
  Status run(int) override { return internal_error("another rank's segment was run here"); }
  std::optional<double> timed_us() const override { return timed_ ? std::optional<double>(0) : std::nullopt; }

 private:
  bool timed_;
};

}  // namespace heddle
