#include "simulated_files.h"

#include <algorithm>
#include <cerrno>

#include "heddle/base/sync.h"

namespace heddle {
namespace {

constexpr int64_t kLongestHang_ns = 4'000'000'000;

size_t part_of(size_t size, Random& random) {
  return static_cast<size_t>(static_cast<double>(size) * random.unit());
}

}  // namespace

int SimulatedDrive::file_at(const std::string& path) const {
  const auto it = names_.find(path);
  return it == names_.end() ? kNone : it->second.file;
}

void SimulatedDrive::set(const std::string& path, int file) {
  auto& name = names_[path];
  name.since.push_back(name.file);
  name.file = file;
}

void SimulatedDrive::crash() {
  auto& random = Simulation::current().random();
  for (auto& f : files_) {
    if (f.content == f.synced) continue;
    switch (random.below(4)) {
      case 0:
        f.content = f.synced;
        break;
      case 1:
        break;
      default: {
        const size_t size = f.content.size();
        f.content.resize(part_of(size, random));
        if (random.chance(.5)) f.content.resize(size, '\0');
      }
    }
    f.synced = f.content;
  }
  for (auto& [path, name] : names_) {
    if (!name.since.empty()) {
      name.since.push_back(name.file);
      name.file = name.since[random.below(name.since.size())];
    }
    name.since.clear();
  }
  std::erase_if(names_, [this](const auto& entry) {
    return entry.first != "/" &&
           (entry.second.file == kNone || file_at(parent_folder(entry.first)) != kFolder);
  });
}

void SimulatedFiles::crash() {
  crashed_ = true;
  open_.clear();
}

bool SimulatedFiles::pass() {
  auto& random = Simulation::current().random();
  if (drive_.hangs > 0 && random.chance(drive_.hangs)) sleep_ns(random.between(0, kLongestHang_ns));
  sleep_ns(random.chance(.02) ? random.between(1'000'000, 50'000'000) : random.between(10'000, 300'000));
  return !crashed_;
}

bool SimulatedFiles::sync_fails() {
  return drive_.failures > 0 && Simulation::current().random().chance(drive_.failures);
}

int SimulatedFiles::create(const std::string& path, std::optional<unsigned>) {
  if (!pass()) return -EIO;
  if (drive_.file_at(parent_folder(path)) != SimulatedDrive::kFolder) return -ENOENT;
  if (drive_.file_at(path) != SimulatedDrive::kNone) return -EEXIST;
  if (drive_.full) return -ENOSPC;
  drive_.files_.emplace_back();
  const int file = static_cast<int>(drive_.files_.size()) - 1;
  drive_.set(path, file);
  open_[++drive_.opened_] = file;
  return drive_.opened_;
}

int SimulatedFiles::write(int file, std::string_view content) {
  // What is written has texts of other lengths from run to run, such as times, and none may decide.
  auto& random = Simulation::current().random();
  for (int64_t parts = random.between(1, 4); parts > 0; --parts) {
    if (!pass()) return -EIO;
    if (drive_.full) return -ENOSPC;
    const size_t part = parts == 1 ? content.size() : part_of(content.size(), random);
    drive_.files_[static_cast<size_t>(open_.at(file))].content += content.substr(0, part);
    content.remove_prefix(part);
  }
  return 0;
}

int SimulatedFiles::sync(int file) {
  if (!pass() || sync_fails()) return -EIO;
  auto& f = drive_.files_[static_cast<size_t>(open_.at(file))];
  f.synced = f.content;
  return 0;
}

int SimulatedFiles::close(int file) {
  if (crashed_) return -EIO;
  open_.erase(file);
  return 0;
}

int SimulatedFiles::rename(const std::string& from, const std::string& to) {
  if (!pass()) return -EIO;
  const int file = drive_.file_at(from);
  if (file == SimulatedDrive::kNone) return -ENOENT;
  drive_.set(to, file);
  drive_.set(from, SimulatedDrive::kNone);
  return 0;
}

int SimulatedFiles::link(const std::string& from, const std::string& to) {
  if (!pass()) return -EIO;
  const int file = drive_.file_at(from);
  if (file == SimulatedDrive::kNone) return -ENOENT;
  if (drive_.file_at(to) != SimulatedDrive::kNone) return -EEXIST;
  if (drive_.full) return -ENOSPC;
  drive_.set(to, file);
  return 0;
}

int SimulatedFiles::remove(const std::string& path) {
  if (!pass()) return -EIO;
  if (drive_.file_at(path) == SimulatedDrive::kNone) return -ENOENT;
  drive_.set(path, SimulatedDrive::kNone);
  return 0;
}

int SimulatedFiles::make_folder(const std::string& path) {
  if (!pass()) return -EIO;
  if (drive_.file_at(path) != SimulatedDrive::kNone) return -EEXIST;
  drive_.set(path, SimulatedDrive::kFolder);
  return 0;
}

int SimulatedFiles::check_folder(const std::string& path) {
  return drive_.file_at(path) == SimulatedDrive::kFolder ? 0 : -ENOTDIR;
}

int SimulatedFiles::sync_folder(const std::string& path) {
  if (!pass() || sync_fails()) return -EIO;
  for (auto& [name, what] : drive_.names_)
    if (name != path && parent_folder(name) == path) what.since.clear();
  return 0;
}

Result<std::string> SimulatedFiles::read(const std::string& path, int64_t) {
  if (!pass()) return io_error(path + ": cannot be read");
  const int file = drive_.file_at(path);
  if (file < 0) return Error(Code::kNotFound, path + ": is not there");
  return drive_.files_[static_cast<size_t>(file)].content;
}

Result<std::vector<std::string>> SimulatedFiles::list(const std::string& folder) {
  if (!pass()) return io_error(folder + ": cannot be listed");
  if (drive_.file_at(folder) != SimulatedDrive::kFolder)
    return Error(Code::kNotFound, folder + ": is not there");
  std::vector<std::string> names;
  for (const auto& [path, name] : drive_.names_)
    if (name.file != SimulatedDrive::kNone && path != folder && parent_folder(path) == folder)
      names.push_back(path.substr(path.rfind('/') + 1));
  return names;
}

}  // namespace heddle
