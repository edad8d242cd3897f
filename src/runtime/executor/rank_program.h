// Cuts a lane's tasks into what each rank does, and messages for the edges that lead from one to another.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "program.h"

namespace heddle {

// What a kSend carries, and in which memories the two ranks have it.
struct Carried {
  int32_t tensor = -1;
  int32_t from_memory = 0, to_memory = 0;
};

// The tasks of all ranks, the same on each.
struct WholeProgram {
  std::vector<Task> tasks;
  std::vector<std::pair<int32_t, int32_t>> edges;  // (before, after); doubles are allowed
  std::vector<int32_t> owner;                      // per task: the rank that does it
  std::vector<Carried> carried;                    // per task
  std::vector<int32_t> to_rank;                    // per task: where a transfer between ranks ends; else -1
};

struct RankPart {
  std::vector<Task> tasks;          // own ones and arrivals, in the plan's order
  std::vector<int32_t> from_whole;  // per task of the whole: the own one; -1: another rank's
  std::vector<std::pair<int32_t, int32_t>> edges, signals;
  std::vector<Message> sends, receives;
  int32_t messages = 0;
};
// A task that others wait for tells each of their ranks once. O((tasks + edges) log edges).
RankPart part_of_rank(const WholeProgram& whole, int self);

int64_t message_bytes(const Graph& graph, const Message& message);
// 0 where no message carries anything.
int64_t widest_message(const Graph& graph, const Program& program);

// Stands for another rank's segment: its kind of task is the same on every rank.
class ElsewhereSegment final : public CompiledSegment {
 public:
  explicit ElsewhereSegment(bool timed) : timed_(timed) {}
  Status bind(int, std::span<const TensorView>, std::span<const TensorView>) override { return {}; }
  Status run(int) override { return Error(Code::kInternal, "another rank's segment was run here"); }
  std::optional<double> timed_us() const override { return timed_ ? std::optional<double>(0) : std::nullopt; }

 private:
  bool timed_;
};

}  // namespace heddle
