// A server's answer to v2/status, for people.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"

namespace heddle {

std::string status_text(const Json& status);
// The plan of a server that begins to serve.
std::string pools_table(const Json& status);
// Sessions of models with state; empty: there are no such models.
std::string sessions_table(const Json& status);
// {CLASS: N} as "front=1 back=2".
std::string devices_text(const Json& devices);
// A whole number; what is no number is 0.
std::string whole_text(const Json& of, const char* name);
// "connected", or the state and why it has it: "lost: ...".
std::string worker_state(const Json& worker);
// "; server-0 leads in term 2", or nothing if the server has no standbys.
std::string leader_text(const Json& status);

// Two answers of one server, `seconds` apart, as rates of the time between; without `before` rates are left out.
std::string watch_text(const Json* before, const Json& now, double seconds);

}  // namespace heddle
