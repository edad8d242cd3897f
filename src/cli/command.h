// How a verb declares its flags and runs, without each verb having to compile the flag parser.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"

namespace CLI {
class App;
}

namespace heddle::cli {

class Command;

// What every verb is given when it runs.
struct Invocation : Control {  // Ctrl-C raises `cancel`; `progress` draws on stderr, and is null with --quiet
  bool json = false;           // print JSON for machines on stdout, nothing else there
};

inline constexpr int kExitDone = 0;      // done
inline constexpr int kExitNo = 1;        // the answer is no: infeasible, failed verification
inline constexpr int kExitBadInput = 2;  // bad usage or input
inline constexpr int kExitInternal = 3;  // a bug in Heddle
inline constexpr int kExitInterrupted = 130;

// The exit status, or an error that main prints.
using RunFn = std::function<Result<int>(const Invocation&)>;

struct Verb {
  const char* name;
  const char* summary;
  RunFn (*setup)(Command&);  // declares the flags and returns what runs
};

// Declares flags. The variables must outlive parsing: keep them in the verb's options object.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}
  Command& positional(const std::string& name, std::string& out, const std::string& help,
                      bool required = true);
  // One or more.
  Command& positionals(const std::string& name, std::vector<std::string>& out, const std::string& help);
  Command& option(const std::string& flags, std::string& out, const std::string& help);
  Command& option(const std::string& flags, int64_t& out, const std::string& help, int64_t min, int64_t max);
  Command& option(const std::string& flags, double& out, const std::string& help, double min, double max);
  Command& option(const std::string& flags, std::optional<int64_t>& out, const std::string& help, int64_t min,
                  int64_t max);
  // May be given several times.
  Command& list(const std::string& flags, std::vector<std::string>& out, const std::string& help);
  Command& flag(const std::string& flags, bool& out, const std::string& help);
  Command& footer(const std::string& text);
  // One of these must follow: `heddle fleet plan`. Flags of the verb itself (--json, --quiet) may stand
  // behind them.
  RunFn subverbs(std::span<const Verb> verbs);

 private:
  CLI::App& app_;
};

std::span<const Verb> verbs();

int exit_status(Code code);

// Can a file be made there? Asked before long work, so that a mistyped folder does not cost it. Empty paths
// are fine.
Status check_output(const std::string& path);

// "a,b,c" to its parts; empty parts are dropped.
std::vector<std::string> split_list(const std::string& text);

}  // namespace heddle::cli
