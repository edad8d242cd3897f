// A host's files as its processes see them, and as they are after a crash of the host: what was not synced may be lost
// or be there in part.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/file_calls.h"
#include "heddle/base/simulation.h"

namespace heddle {

// Each sync that has reported success stays. A disk that loses what it has confirmed is not simulated.
class SimulatedDrive {
 public:
  bool full = false;    // nothing more can be written
  double failures = 0;  // the chance that a sync reports an error, and has done nothing
  double hangs = 0;     // the chance that a call takes up to 4 s
  // The host crashes. A file that was not synced has its old content, the new, or the new one's beginning, with zeros
  // behind it or nothing. A name stands for any of the files that it stood for since its folder was synced.
  void crash();

 private:
  friend class SimulatedFiles;
  static constexpr int kNone = -1, kFolder = -2;
  struct File {
    std::string content, synced;
  };
  struct Name {
    int file = kNone;
    std::vector<int> since;  // what it stood for since its folder was synced; empty: what it stands for
  };
  void set(const std::string& path, int file);
  int file_at(const std::string& path) const;

  std::vector<File> files_;
  std::map<std::string, Name> names_ = {{"/", {kFolder, {}}}};
  int opened_ = 0;
};

// The calls of one process. Each takes its time, and a process can crash in it.
class SimulatedFiles final : public FileCalls {
 public:
  explicit SimulatedFiles(SimulatedDrive& drive) : drive_(drive) {}
  void crash();  // the process changes nothing any more

  int create(const std::string& path, std::optional<unsigned> mode) override;
  int write(int file, std::string_view content) override;
  int sync(int file) override;
  int close(int file) override;
  int rename(const std::string& from, const std::string& to) override;
  int link(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int make_folder(const std::string& path) override;
  int check_folder(const std::string& path) override;
  int sync_folder(const std::string& path) override;
  Result<std::string> read(const std::string& path, int64_t max_bytes) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;

 private:
  bool pass();  // false: the process has crashed
  bool sync_fails();

  SimulatedDrive& drive_;
  std::map<int, int> open_;  // number, file
  bool crashed_ = false;
};

}  // namespace heddle
