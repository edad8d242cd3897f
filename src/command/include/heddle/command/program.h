// A program of verbs: flags to verbs, signals to cancellation, errors to messages and exit statuses.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "heddle/command/command.h"

namespace heddle {

struct VerbProgram {
  const char* summary;
  const char* example;  // of a call, for people who give no verb
  std::string version;  // version, commit and build options, as --version prints them
  std::span<const Verb> verbs;
  // Verbs that have another name than in earlier builds, behind the program or verb that they belonged to, and the
  // name now.
  std::span<const std::pair<const char*, const char*>> renamed;
};

// The whole of main(). Call it before any thread is started.
int run_program(const VerbProgram& program, int argc, char** argv);

// The help of the verb, or of the part of a verb, at `path`; of the program if it is empty.
Result<std::string> help_of(const CLI::App& program, std::span<const std::string> path);

}  // namespace heddle
