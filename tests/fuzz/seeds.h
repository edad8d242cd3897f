// The seeds that a fuzz program is given, for custom mutators that learn from them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// The content of all files in the folders of libFuzzer's command line, by their names.
inline std::vector<std::string> seeds_of(int argc, char** argv) {
  std::vector<std::string> seeds;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    if (argv[i][0] == '-' || !std::filesystem::is_directory(argv[i], error)) continue;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error))
      if (entry.is_regular_file(error)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
      std::ifstream file(path, std::ios::binary);
      seeds.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    }
  }
  return seeds;
}
