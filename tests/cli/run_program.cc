#include "run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace heddle {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "heddle-cli-XXXXXX").string();
  path_ = mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream(file(name), std::ios::binary) << content;
}

std::string TemporaryFolder::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(file(name), std::ios::binary).rdbuf();
  return text.str();
}

namespace {

// In the child: never returns.
[[noreturn]] void become(const std::vector<std::string>& command, const std::string& folder,
                         const std::string& out, const std::string& err) {
  const int out_fd = open(out.c_str(), O_WRONLY | O_CREAT, 0600),
            err_fd = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(out_fd, STDOUT_FILENO);
  dup2(err_fd, STDERR_FILENO);
  if (chdir(folder.c_str()) != 0) _exit(126);
  // Each test has a profile store of its own.
  setenv("HEDDLE_PROFILE_STORE", (folder + "/profiles.sqlite").c_str(), 1);
  std::vector<char*> argv;
  for (const auto& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

int exit_status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

Ran run_heddle(const std::vector<std::string>& arguments, const std::string& folder,
               double interrupt_after_s) {
  const TemporaryFolder captured;
  const auto out = captured.file("out"), err = captured.file("err");
  std::vector<std::string> command = {HEDDLE_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const pid_t child = fork();
  if (child == 0) become(command, folder, out, err);
  if (interrupt_after_s > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(interrupt_after_s));
    kill(child, SIGINT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {exit_status_of(status), captured.read("out"), captured.read("err")};
}

Ran run_command(const std::vector<std::string>& command, const std::string& folder,
                const std::function<void(int pid)>& meanwhile, double most_s) {
  const TemporaryFolder captured;
  const auto out = captured.file("out"), err = captured.file("err");
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    become(command, folder, out, err);
  }
  if (meanwhile) meanwhile(child);
  int status = 0;
  for (double waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 0.01) {
    if (waited > most_s) kill(-child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {exit_status_of(status), captured.read("out"), captured.read("err")};
}

}  // namespace heddle
