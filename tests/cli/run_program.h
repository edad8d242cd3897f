// Runs the heddle program as a user would and captures what it says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wheel_file.h"

namespace heddle {

// A graph file: "chain", an op that reads another's output.
inline constexpr char kTwoOpGraph[] =
    R"({"format": "heddle-graph", "version": 1, "name": "chain", "inputs": [], "outputs": ["t1"],
 "params": [], "ops": [
 {"name": "a", "type": "Work", "inputs": [], 
  "outputs": [{"name": "t0", "dtype": "f32", "shape": [1000]}], "flops": 1e9},
 {"name": "b", "type": "Work", "inputs": ["t0"], 
  "outputs": [{"name": "t1", "dtype": "f32", "shape": [1000]}], "flops": 1e9}]})";

struct Ran {
  int status = -1;  // exit status; 128 + signal when killed
  std::string out, err;
};

// Runs build/heddle with these arguments in `folder` (created by the fixture), without a shell.
// `interrupt_after_s` > 0 sends SIGINT then.
Ran run_heddle(const std::vector<std::string>& arguments, const std::string& folder,
               double interrupt_after_s = 0);

// The same for any program of the PATH (or a path): its name first. Children of it outlive nothing: it leads
// a process group, which is killed after `most_s`. `meanwhile` is called once it runs, with its process id;
// may be empty.
Ran run_command(const std::vector<std::string>& command, const std::string& folder,
                const std::function<void(int pid)>& meanwhile = {}, double most_s = 120);

// A fresh folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace heddle
