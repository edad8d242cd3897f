// Processes that mpirun has started, as /proc shows them.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle::test {

// A child of `parent` that is this rank of the program; 0: there is none.
inline int rank_below(int parent, int rank) {
  namespace fs = std::filesystem;
  for (const auto& process : fs::directory_iterator("/proc")) {
    std::ifstream stat(process.path() / "stat");
    int pid = 0, above = 0;
    std::string name, state;
    stat >> pid >> name >> state >> above;
    if (above != parent || name != "(heddle)") continue;
    std::stringstream environment;
    environment << std::ifstream(process.path() / "environ", std::ios::binary).rdbuf();
    if (environment.str().find("OMPI_COMM_WORLD_RANK=" + std::to_string(rank)) != std::string::npos)
      return pid;
  }
  return 0;
}

}  // namespace heddle::test
