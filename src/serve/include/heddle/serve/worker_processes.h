// Workers that a server starts itself, on this machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// Divides the devices of each class among `workers` as evenly as it goes; what is left over goes to one after
// the other, from class to class.
std::vector<std::map<std::string, int64_t>> divide_devices(const std::map<std::string, int64_t>& devices,
                                                           int64_t workers);

// Processes of this program that run `heddle worker`; they end with this object, and with this process
// however that ends. One that dies is not started again.
class WorkerProcesses {
 public:
  WorkerProcesses() = default;
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // `to` are the flags that say where it announces itself. Call it from a thread that lives as long as the
  // process.
  Status start(const std::string& name, const std::map<std::string, int64_t>& devices,
               const std::vector<std::string>& to);

 private:
  std::vector<pid_t> processes_;
};

}  // namespace heddle
