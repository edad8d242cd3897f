// One setup function per verb; the list is in verbs.cc.
#pragma once

#include "heddle/command/command.h"

namespace heddle::cli {

std::span<const Verb> verbs();

RunFn setup_bench(Command& command);
RunFn setup_compare(Command& command);
RunFn setup_completion(Command& command);
RunFn setup_deploy(Command& command);
RunFn setup_devices(Command& command);
RunFn setup_doctor(Command& command);
RunFn setup_explain(Command& command);
RunFn setup_export(Command& command);
RunFn setup_fleet(Command& command);
RunFn setup_generate(Command& command);
RunFn setup_grade(Command& command);
RunFn setup_help(Command& command);
RunFn setup_inspect(Command& command);
RunFn setup_loadtest(Command& command);
RunFn setup_man(Command& command);
RunFn setup_plan(Command& command);
RunFn setup_planners(Command& command);
RunFn setup_profile(Command& command);
RunFn setup_report(Command& command);
RunFn setup_run(Command& command);
RunFn setup_serve(Command& command);
RunFn setup_server(Command& command);
RunFn setup_verify(Command& command);
RunFn setup_version(Command& command);
RunFn setup_whatif(Command& command);
RunFn setup_worker(Command& command);

}  // namespace heddle::cli
