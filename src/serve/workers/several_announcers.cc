// A worker that announces itself in several places, each from a thread of its own: a place that does not answer must
// not delay the renewal in another.
#include <algorithm>
#include <utility>

#include "heddle/base/sync.h"
#include "heddle/serve/bus.h"

namespace heddle {
namespace {

class Place {
 public:
  explicit Place(std::unique_ptr<Announcer> announcer) : announcer_(std::move(announcer)) {
    lease_s_ = announcer_->lease_s();
    thread_ = Thread([this] { run(); });
  }
  ~Place() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // The last entry replaces one that has not been announced yet.
  void announce(const std::string& key, const std::string& value) {
    {
      const std::lock_guard lock(mutex_);
      key_ = key;
      value_ = value;
      due_ = true;
    }
    changed_.notify_all();
  }
  // Waits for an announcement that is under way.
  Status withdraw(const std::string& key) {
    {
      std::unique_lock lock(mutex_);
      due_ = false;
      changed_.wait(lock, [this] { return !calling_; });
    }
    return announcer_->withdraw(key);
  }
  Status last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  double lease_s() const {
    const std::lock_guard lock(mutex_);
    return lease_s_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return quit_ || due_; });
      if (quit_) return;
      due_ = false;
      calling_ = true;
      const std::string key = key_, value = value_;
      lock.unlock();
      Status status = announcer_->announce(key, value);
      const double lease_s = announcer_->lease_s();
      lock.lock();
      calling_ = false;
      last_ = std::move(status);
      lease_s_ = lease_s;
      changed_.notify_all();
    }
  }

  const std::unique_ptr<Announcer> announcer_;
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::string key_, value_;
  bool due_ = false, calling_ = false, quit_ = false;
  Status last_;
  double lease_s_ = 1;
  Thread thread_;
};

class SeveralAnnouncers final : public Announcer {
 public:
  explicit SeveralAnnouncers(std::vector<std::unique_ptr<Announcer>> announcers) {
    for (auto& announcer : announcers) places_.push_back(std::make_unique<Place>(std::move(announcer)));
  }
  // Does not wait. An error if the last announcement failed in every place.
  Status announce(const std::string& key, const std::string& value) override {
    for (const auto& place : places_) place->announce(key, value);
    Status last;
    for (const auto& place : places_) {
      last = place->last();
      if (last.ok()) return {};
    }
    return last;
  }
  Status withdraw(const std::string& key) override {
    Status first;
    for (const auto& place : places_)
      if (auto status = place->withdraw(key); !status.ok() && first.ok()) first = std::move(status);
    return first;
  }
  double lease_s() const override {
    double least = places_.front()->lease_s();
    for (const auto& place : places_) least = std::min(least, place->lease_s());
    return least;
  }

 private:
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace

std::unique_ptr<Announcer> several_announcers(std::vector<std::unique_ptr<Announcer>> announcers) {
  if (announcers.size() == 1) return std::move(announcers.front());
  return std::make_unique<SeveralAnnouncers>(std::move(announcers));
}

}  // namespace heddle
