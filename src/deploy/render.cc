#include "heddle/deploy/render.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "heddle/base/file.h"
#include "heddle/base/spelling.h"
#include "renderers.h"

namespace heddle {
namespace {

// Names the files of a deployment, so that a later one can remove what it does not have any more.
constexpr const char* kListFile = "files.txt";

struct Renderer {
  const char* name;
  Result<DeployFiles> (*files)(const Workloads&);
};
constexpr Renderer kRenderers[] = {
    {"kubernetes", kubernetes_files}, {"slurm", slurm_files}, {"ray", ray_files}, {"systemd", systemd_files}};

Error failed_on(const std::string& path, const std::error_code& error) {
  return io_error(error.message()).with_context(path);
}

// A list that was edited must not lead out of the folder.
bool stays_inside(const std::string& path) {
  const std::filesystem::path parts(path);
  return parts.is_relative() &&
         std::none_of(parts.begin(), parts.end(), [](const auto& p) { return p == ".."; });
}

Result<std::vector<std::string>> listed_files(const std::string& folder) {
  const auto path = folder + "/" + kListFile;
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, int64_t{1} << 24));
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!stays_inside(line))
      return invalid_input(quote_text(line) + " is not a path in this folder; write the deployment anew")
          .with_context(path);
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

}  // namespace

std::vector<std::string> deploy_targets() {
  std::vector<std::string> names;
  for (const auto& r : kRenderers) names.emplace_back(r.name);
  return names;
}

Result<DeployFiles> render_deployment(const Workloads& workloads, const std::string& target) {
  const auto* found = std::ranges::find(kRenderers, target, &Renderer::name);
  HEDDLE_ASSIGN_OR_RETURN(DeployFiles files, found->files(workloads));
  std::string list;
  for (const auto& [path, text] : files) list += path + "\n";
  files[kListFile] = list;
  return files;
}

Status write_deployment(const std::string& folder, const DeployFiles& files) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return failed_on(folder, error);
  if (file_exists(folder + "/" + kListFile)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto earlier, listed_files(folder));
    for (const auto& path : earlier)
      if (!files.contains(path)) fs::remove(folder + "/" + path, error);
  }
  for (const auto& [path, text] : files) {
    const auto to = folder + "/" + path;
    fs::create_directories(fs::path(to).parent_path(), error);
    if (error) return failed_on(to, error);
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(to, text));
    if (!path.ends_with(".sh") && !path.ends_with(".sbatch")) continue;
    using fs::perms;
    fs::permissions(to, perms::owner_exec | perms::group_exec | perms::others_exec, fs::perm_options::add,
                    error);
    if (error) return failed_on(to, error);
  }
  return {};
}

Result<DeployFiles> read_deployment(const std::string& folder) {
  HEDDLE_ASSIGN_OR_RETURN(const auto names, listed_files(folder));
  DeployFiles files;
  for (const auto& name : names) {
    HEDDLE_ASSIGN_OR_RETURN(files[name], read_file(folder + "/" + name, int64_t{1} << 28));
  }
  HEDDLE_ASSIGN_OR_RETURN(files[kListFile], read_file(folder + "/" + kListFile));
  return files;
}

}  // namespace heddle
