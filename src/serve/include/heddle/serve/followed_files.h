// The served file with new content replaces what is served.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "heddle/serve/fleet_control.h"
#include "heddle/serve/infer_service.h"

namespace heddle {

// Whether a file is another one than before: looked at once a second, and taken once it has stayed the same
// for that long, so that one which is being written is not read too early.
class FileWatch {
 public:
  explicit FileWatch(std::string path) : path_(std::move(path)), taken_(state()), seen_(taken_) {}

  bool changed() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < std::chrono::seconds(1)) return false;
    looked_ = now;
    const auto is = state();
    const bool settled = is == seen_ && is != taken_ && is.second != 0;
    seen_ = is;
    if (settled) taken_ = is;
    return settled;
  }

 private:
  using State = std::pair<std::filesystem::file_time_type, std::uintmax_t>;  // size 0: not there, or empty
  State state() const {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(path_, error);
    const auto size = error ? 0 : std::filesystem::file_size(path_, error);
    return error ? State{} : State{time, size};
  }

  const std::string path_;
  State taken_, seen_;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

// These return at once; what came of it is logged. A file that cannot be served leaves the old plan in use.
void follow_plan(const std::string& path, const InferService& service, const std::string& model);
void follow_fleet(const std::string& path, FleetControl& control);

}  // namespace heddle
