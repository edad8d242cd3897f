#include "heddle/base/wheels.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace heddle {
namespace {

namespace fs = std::filesystem;

// The folder of the program or library that holds this code.
fs::path own_folder() {
  Dl_info info = {};
  void* map = nullptr;
  const bool found =
      ::dladdr1(reinterpret_cast<const void*>(&own_folder), &info, &map, RTLD_DL_LINKMAP) != 0 &&
      map != nullptr;
  const char* name = found ? static_cast<const link_map*>(map)->l_name : "";
  std::error_code error;
  // The name of the program itself is empty.
  return fs::canonical(*name != '\0' ? name : "/proc/self/exe", error).parent_path();
}

// The folder that holds openvino/libs of the OpenVINO in this process; empty: there is none of a wheel.
fs::path openvino_root() {
  // dl_iterate_phdr() would hold the loader's lock while paths are built, which can wait for a thread that wants it.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libopenvino.so") == std::string::npos) continue;
    // A line begins with an address. Its path has links resolved; the loader knows the path that was asked for.
    Dl_info info = {};
    const auto address = std::bit_cast<const void*>(std::strtoull(line.c_str(), nullptr, 16));
    if (::dladdr(address, &info) == 0) continue;
    const fs::path libs = fs::path(info.dli_fname).parent_path(), package = libs.parent_path();
    if (libs.filename() == "libs" && package.filename() == "openvino") return package.parent_path();
  }
  return {};
}

// The wheels that the build folder around `folder` was configured with; empty: there is none.
fs::path build_root(fs::path folder) {
  std::error_code error;
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::exists(folder / "CMakeCache.txt", error)) return folder / HEDDLE_WHEELS_FROM_BUILD;
  }
  return {};
}

std::vector<fs::path> roots() {
  const fs::path own = own_folder();
  std::vector<fs::path> all;
  const auto add = [&all](const fs::path& root) {
    if (root.empty()) return;
    const fs::path normal = root.lexically_normal();
    if (std::find(all.begin(), all.end(), normal) == all.end()) all.push_back(normal);
  };
  for (fs::path folder = own; folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.filename() == "heddle") add(folder.parent_path());
  }
  add(own.parent_path() / "lib" / "heddle");
  if (own.filename() == "heddle") add(own);
  add(openvino_root());
  add(build_root(own));
  if (const char* named = std::getenv("HEDDLE_SITE_PACKAGES")) add(named);
  return all;
}

// `path` below the root, its `*` resolved; empty: not there.
fs::path found_in(const fs::path& root, const std::string& path) {
  std::error_code error;
  if (!path.ends_with('*')) return fs::exists(root / path, error) ? root / path : fs::path();
  const fs::path pattern = root / path.substr(0, path.size() - 1);
  std::vector<fs::path> matches;
  for (const auto& entry : fs::directory_iterator(pattern.parent_path(), error)) {
    if (entry.path().filename().string().starts_with(pattern.filename().string()))
      matches.push_back(entry.path());
  }
  return matches.empty() ? fs::path() : *std::min_element(matches.begin(), matches.end());
}

}  // namespace

Result<std::string> find_in_wheels(const std::string& path) {
  std::string tried;
  for (const fs::path& root : roots()) {
    if (const fs::path found = found_in(root, path); !found.empty()) return found.string();
    tried += (tried.empty() ? "" : ", ") + root.string();
  }
  const std::string wheel = path.substr(0, path.find('/'));
  return not_found("there is no " + path + " in " + tried + "; install the Python wheel of '" + wheel +
                   "' (in a checkout: `make setup`), or set HEDDLE_SITE_PACKAGES to the folder that "
                   "has " +
                   wheel + "/");
}

}  // namespace heddle
