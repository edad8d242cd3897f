// Any bytes as what the servers' shared folder holds, as a server reads it that starts: an entry is refused with a
// message, or it gives a lease or a state that the server can write and read again. The first byte chooses: 'l' the
// lease, 's' the saved state.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/fleet_state.h"
#include "control/plan_log.h"
#include "heddle/base/file_calls.h"
#include "heddle/base/json.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/fleet_check.h"
#include "json_mutator.h"
#include "require.h"
#include "standby/leadership.h"
#include "standby/server_state.h"
#include "workers/protocol_version.h"

namespace {

using namespace heddle;

constexpr uint64_t kFleetFile = 1, kTerm = 5;  // of the server that reads

// A folder in memory. A file that is created is its name until it is closed.
class MemoryFiles final : public FileCalls {
 public:
  std::map<std::string, std::string> files;

  int create(const std::string& path, std::optional<unsigned>) override {
    if (!files.try_emplace(path).second) return -EEXIST;
    open_.push_back(path);
    return static_cast<int>(open_.size()) - 1;
  }
  int write(int file, std::string_view content) override {
    files[open_[static_cast<size_t>(file)]] = content;
    return 0;
  }
  int sync(int) override { return 0; }
  int close(int) override { return 0; }
  int rename(const std::string& from, const std::string& to) override {
    files[to] = files[from];
    return remove(from);
  }
  int link(const std::string& from, const std::string& to) override {
    return files.try_emplace(to, files[from]).second ? 0 : -EEXIST;
  }
  int remove(const std::string& path) override { return files.erase(path) > 0 ? 0 : -ENOENT; }
  int make_folder(const std::string&) override { return 0; }
  int check_folder(const std::string&) override { return 0; }
  int sync_folder(const std::string&) override { return 0; }
  Result<std::string> read(const std::string& path, int64_t) override {
    const auto it = files.find(path);
    if (it == files.end()) return Error(Code::kNotFound, path);
    return it->second;
  }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [path, content] : files) names.push_back(path.substr(folder.size() + 1));
    return names;
  }

 private:
  std::vector<std::string> open_;
};

std::shared_ptr<SharedStore> store_with(MemoryFiles& files, const char* path, std::string_view content) {
  files.files[path] = content;
  auto store = folder_store("/state", files);
  require(store.ok());
  return *store;
}

void read_lease(std::string_view content) {
  MemoryFiles files;
  const auto store = store_with(files, "/state/leader.1", content);
  uint64_t term = 0;
  {
    Leadership one(store, "one", 3600);
    const auto led = one.step();
    if (!led.ok()) {
      require(!led.error().message().empty());
      return;
    }
    static_cast<void>(one.leader());
    term = one.term();
    require(*led == (term > 0) && term <= kMostTerm);
    if (*led) require(one.step().ok());  // renews it
  }
  // Who led has given it back.
  Leadership next(store, "next", 3600);
  if (term > 0 && term < kMostTerm) require(next.step().ok() && next.term() == term + 1);
}

void read_state(std::string_view content) {
  MemoryFiles files;
  ServerState state(store_with(files, "/state/state.1", content));
  const auto text = state.load(kFleetFile, kTerm);
  if (!text.ok()) {
    require(!text.error().message().empty());
    return;
  }
  require(state.load(kFleetFile, kTerm).ok() && *state.load(kFleetFile, kTerm) == *text);
  const auto json = parse_json(*text, {64, int64_t{64} << 20});
  if (!json.ok()) return;
  const auto served = served_from_json(*json);
  if (!served.ok()) {
    require(!served.error().message().empty());
    return;
  }
  PlanLog log(nullptr);
  log.continue_from(json->value("changes", Json::array()));
  static_cast<void>(log.entries());
  auto written = to_json(*served);
  const auto again = served_from_json(written);
  require(again.ok() && to_json(*again) == written);
  // What the server does with it: the plan is put to work, and a changed fleet is planned for.
  static_cast<void>(drained_json(*served));
  static_cast<void>(deploy(served->corrected(), served->plan).ok());
  if (const auto available = served->available(); available.ok())
    static_cast<void>(check_fleet_plan(*available, served->plan).ok());
  require(state.save(kFleetFile, written.dump(), kTerm).ok());
  require(*state.load(kFleetFile, kTerm) == written.dump());
}

}  // namespace

// Behind the letter, and behind the lines of the folder's revision and of the state's file and term.
JsonPlace json_place(std::string_view input) {
  size_t begin = std::min<size_t>(1, input.size());
  for (int lines = input.starts_with('s') ? 2 : 1; lines > 0; --lines) {
    const size_t end = input.find('\n', begin);
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  return {begin, input.size()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'l') read_lease(content);
  if (data[0] == 's') read_state(content);
  return 0;
}
