#include "local_transport.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace heddle::test {
namespace {

struct LocalHub {
  struct Box {
    std::mutex mutex;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> arrived;  // (from, tag)
    std::optional<std::string> alarm;
  };
  explicit LocalHub(int ranks) : boxes(static_cast<size_t>(ranks)) {}
  std::vector<Box> boxes;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalHub> hub, int rank, bool device_memory)
      : hub_(std::move(hub)), rank_(rank), device_memory_(device_memory) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_->boxes.size()); }
  std::string host_name() const override { return "local"; }
  int max_tag() const override { return INT32_MAX; }
  bool reaches_memory_of(std::string_view family) const override {
    return device_memory_ && family == "host";
  }

  Status send(int to, int tag, std::span<const std::byte> data, int64_t token) override {
    HEDDLE_RETURN_IF_ERROR(check(to));
    LocalHub::Box& box = hub_->boxes[static_cast<size_t>(to)];
    {
      const std::lock_guard lock(box.mutex);
      box.arrived[{rank_, tag}].emplace_back(data.begin(), data.end());
    }
    if (token != kNoToken) sent_.push_back(token);
    return {};
  }

  Status receive(int from, int tag, std::span<std::byte> data, int64_t token) override {
    HEDDLE_RETURN_IF_ERROR(check(from));
    wanted_.push_back({{from, tag}, data, token});
    return {};
  }

  Status progress(std::vector<int64_t>& done) override {
    done.insert(done.end(), sent_.begin(), sent_.end());
    sent_.clear();
    LocalHub::Box& box = hub_->boxes[static_cast<size_t>(rank_)];
    const std::lock_guard lock(box.mutex);
    if (box.alarm && !alarm_) alarm_ = box.alarm;
    size_t kept = 0;
    for (Wanted& w : wanted_) {
      const auto found = box.arrived.find(w.key);
      if (found == box.arrived.end()) {
        wanted_[kept++] = w;
        continue;
      }
      const std::vector<std::byte> message = std::move(found->second.front());
      found->second.pop_front();
      if (found->second.empty()) box.arrived.erase(found);
      if (message.size() != w.data.size())
        return Error(Code::kInternal, "a message of " + std::to_string(message.size()) +
                                          " bytes came where one of " + std::to_string(w.data.size()) +
                                          " was expected");
      std::copy(message.begin(), message.end(), w.data.begin());
      if (w.token != kNoToken) done.push_back(w.token);
    }
    wanted_.resize(kept);
    return {};
  }

  void raise_alarm(const std::string& reason) override {
    for (size_t r = 0; r < hub_->boxes.size(); ++r) {
      if (static_cast<int>(r) == rank_) continue;
      const std::lock_guard lock(hub_->boxes[r].mutex);
      if (!hub_->boxes[r].alarm) hub_->boxes[r].alarm = reason;
    }
  }
  const std::optional<std::string>& alarm() const override { return alarm_; }

  Result<double> raw_message_us(int, int, int64_t, int) override {
    return Error(Code::kUnsupported, "ranks within one process have no message passing beneath them");
  }

 private:
  struct Wanted {
    std::pair<int, int> key;
    std::span<std::byte> data;
    int64_t token;
  };
  Status check(int peer) const {
    if (peer >= 0 && peer < size()) return {};
    return Error(Code::kInternal,
                 "rank " + std::to_string(peer) + " is not one of the " + std::to_string(size()) + " ranks");
  }

  const std::shared_ptr<LocalHub> hub_;
  const int rank_;
  const bool device_memory_;
  std::vector<int64_t> sent_;
  std::vector<Wanted> wanted_;  // in the order of the receive calls
  std::optional<std::string> alarm_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks, bool device_memory) {
  auto hub = std::make_shared<LocalHub>(ranks);
  std::vector<std::unique_ptr<Transport>> ends;
  for (int r = 0; r < ranks; ++r) ends.push_back(std::make_unique<LocalTransport>(hub, r, device_memory));
  return ends;
}

}  // namespace heddle::test
