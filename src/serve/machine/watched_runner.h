// Wraps a runner, so that other threads can ask how its run goes. A run that waits for its core and a run that
// hangs differ in the time that the thread waited for a core.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "heddle/serve/live_plane.h"

namespace heddle {

class WatchedRunner final : public DeviceRunner {
 public:
  explicit WatchedRunner(std::shared_ptr<DeviceRunner> runner) : runner_(std::move(runner)) {}
  Status run(std::span<LiveRequest* const> batch) override;
  std::vector<int> cores() const override { return runner_->cores(); }

  struct Now {
    TimeNs elapsed = 0;  // since the run began
    TimeNs waited = 0;   // of these its thread was ready to go on and had no core
  };
  // Of the run that is under way; none: there is none.
  std::optional<Now> now() const;
  // Of all runs so far.
  Now all() const;
  // The cores that the thread may use; empty before its first run.
  std::vector<int> bound() const;

 private:
  Now present() const;  // of the run that is under way, with the lock

  const std::shared_ptr<DeviceRunner> runner_;
  mutable std::mutex mutex_;  // guards what follows
  pid_t thread_ = 0;
  TimeNs begun_ = 0;  // 0: nothing runs
  TimeNs waited_before_ = 0;
  Now ended_;  // the sum of the runs that have ended
};

}  // namespace heddle
