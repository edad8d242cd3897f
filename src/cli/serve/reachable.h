// Waiting for a NATS server that is not there yet, or not any more.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "heddle/base/cancel.h"
#include "heddle/base/log.h"
#include "heddle/base/status.h"

namespace heddle::cli {

// What `make` gives. If `where` is a NATS server that does not answer, it is tried again until it does, with one
// warning: it may start, or come back, later than this process.
template <class Make>
auto when_reachable(const std::string& where, const CancelToken& cancel, const Make& make)
    -> decltype(make()) {
  for (bool warned = false;;) {
    auto made = make();
    const bool waits = !made.ok() && made.error().code() == Code::kIo && where.starts_with("nats://");
    if (!waits || cancel.cancelled()) return made;
    if (!std::exchange(warned, true))
      log_line(LogLevel::kWarning, made.error().to_string() + "; trying again until it answers");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace heddle::cli
