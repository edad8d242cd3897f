#include "heddle/runtime/rank_group.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "heddle/base/json.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kGroupTag = 0;
constexpr int64_t kGroupToken = std::numeric_limits<int64_t>::max();
constexpr uint64_t kLongestText = uint64_t{1} << 40;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

std::string RankGroup::name() const {
  return "rank " + std::to_string(rank()) + " (" + transport_.host_name() + ")";
}

Status RankGroup::wait() {
  const int64_t begin = now_ns();
  while (true) {
    done_.clear();
    HEDDLE_RETURN_IF_ERROR(transport_.progress(done_));
    for (const int64_t token : done_) {
      if (token == kGroupToken) return {};
    }
    const int64_t nap = nap_ns(now_ns() - begin, true);
    if (nap == 0)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::nanoseconds(nap));
  }
}

Status RankGroup::send(int to, std::span<const std::byte> data) {
  HEDDLE_RETURN_IF_ERROR(transport_.send(to, kGroupTag, data, kGroupToken));
  return wait();
}

Status RankGroup::receive(int from, std::span<std::byte> data) {
  HEDDLE_RETURN_IF_ERROR(transport_.receive(from, kGroupTag, data, kGroupToken));
  return wait();
}

Status RankGroup::send_text(int to, const std::string& text) {
  const auto size = static_cast<uint64_t>(text.size());
  HEDDLE_RETURN_IF_ERROR(send(to, bytes_of(size)));
  return text.empty() ? Status() : send(to, std::as_bytes(std::span(text)));
}

Result<std::string> RankGroup::receive_text(int from) {
  uint64_t size = 0;
  HEDDLE_RETURN_IF_ERROR(receive(from, std::as_writable_bytes(std::span(&size, 1))));
  if (size > kLongestText) return internal_error("another rank sent a text of impossible length");
  std::string text(static_cast<size_t>(size), '\0');
  if (size > 0) HEDDLE_RETURN_IF_ERROR(receive(from, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::string> RankGroup::broadcast(std::string text) {
  if (rank() != 0) return receive_text(0);
  for (int to = 1; to < size(); ++to) HEDDLE_RETURN_IF_ERROR(send_text(to, text));
  return text;
}

Status RankGroup::broadcast_bytes(std::span<std::byte> memory) {
  if (memory.empty()) return {};
  if (rank() != 0) return receive(0, memory);
  for (int to = 1; to < size(); ++to) HEDDLE_RETURN_IF_ERROR(send(to, memory));
  return {};
}

Status RankGroup::bring_bytes(int from, std::span<std::byte> memory) {
  if (from == 0 || memory.empty()) return {};
  if (rank() == from) return send(0, memory);
  return rank() == 0 ? receive(from, memory) : Status();
}

Result<std::vector<std::string>> RankGroup::gather(std::string text) {
  std::vector<std::string> texts;
  if (rank() != 0) {
    HEDDLE_RETURN_IF_ERROR(send_text(0, text));
    return texts;
  }
  texts.push_back(std::move(text));
  for (int from = 1; from < size(); ++from) {
    HEDDLE_ASSIGN_OR_RETURN(auto theirs, receive_text(from));
    texts.push_back(std::move(theirs));
  }
  return texts;
}

Result<std::vector<std::string>> RankGroup::exchange(std::string text) {
  HEDDLE_ASSIGN_OR_RETURN(auto texts, gather(std::move(text)));
  texts.resize(static_cast<size_t>(size()));
  for (auto& each : texts) {
    HEDDLE_ASSIGN_OR_RETURN(each, broadcast(std::move(each)));
  }
  return texts;
}

Status RankGroup::agree(const Status& own) {
  Json mine = Json::object();
  if (!own.ok()) {
    mine["code"] = static_cast<int>(own.error().code());
    mine["message"] = (rank() == 0 ? "" : name() + ": ") + own.error().to_string();
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto all, exchange(json_text(mine)));
  std::optional<Error> first;
  for (const auto& text : all) {
    HEDDLE_ASSIGN_OR_RETURN(const Json theirs, parse_json(text));
    if (!theirs.contains("code")) continue;
    const auto code = static_cast<Code>(theirs["code"].get<int>());
    if (!first || (first->code() == Code::kCancelled && code != Code::kCancelled))
      first.emplace(code, theirs["message"].get<std::string>());
  }
  return first ? Status(std::move(*first)) : Status();
}

Result<int64_t> RankGroup::clock_offset_ns(int rounds) {
  int64_t offset = 0;
  for (int other = 1; other < size(); ++other) {
    if (rank() == 0) {
      for (int i = 0; i < rounds; ++i) {
        std::byte ask{};
        HEDDLE_RETURN_IF_ERROR(receive(other, std::span(&ask, 1)));
        const int64_t now = now_ns();
        HEDDLE_RETURN_IF_ERROR(send(other, bytes_of(now)));
      }
    } else if (rank() == other) {
      int64_t shortest = std::numeric_limits<int64_t>::max();
      for (int i = 0; i < rounds; ++i) {
        const std::byte ask{};
        int64_t theirs = 0;
        const int64_t before = now_ns();
        HEDDLE_RETURN_IF_ERROR(send(0, std::span(&ask, 1)));
        HEDDLE_RETURN_IF_ERROR(receive(0, std::as_writable_bytes(std::span(&theirs, 1))));
        const int64_t trip = now_ns() - before;
        if (trip >= shortest) continue;
        shortest = trip;
        offset = theirs - (before + trip / 2);
      }
    }
  }
  return offset;
}

}  // namespace heddle
