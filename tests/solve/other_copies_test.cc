// A user's highspy and ortools bring libraries of the same names as Heddle's. In one process, in any order of loading,
// each must get its own.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "heddle/base/wheels.h"
#include "heddle/solve/self_test.h"

namespace heddle {
namespace {

// What goes wrong when both of Heddle's solvers are asked; under a sanitizer CP-SAT cannot be loaded.
std::string solve_all() {
  const auto highs = highs_self_test();
  if (!highs.ok()) return highs.error().to_string();
  const auto cp_sat = cp_sat_self_test();
  if (!cp_sat.ok() && cp_sat.error().code() != Code::kUnsupported) return cp_sat.error().to_string();
  return highs->version == "1.15.1" ? "" : "HiGHS is " + highs->version;
}

// The dynamic linker takes a library that is loaded for every later one of its name.
TEST(OtherCopies, HeddleLeavesTheirNamesFree) {
  EXPECT_EQ(solve_all(), "");
  for (const char* name : {"libhighs.so.1", "libortools.so.9", "libscip.so.10.0"})
    EXPECT_EQ(::dlopen(name, RTLD_NOW | RTLD_NOLOAD), nullptr) << name;
}

void solve_after_loading(const char* library) {
  const auto file = find_in_wheels(library);
  // DEEPBIND: as in a Python process, in which Heddle's own libraries are not global.
  const bool loaded = file.ok() && ::dlopen(file->c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) != nullptr;
  const std::string problem = loaded ? solve_all() : std::string("not loaded: ") + library;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::_Exit(problem.empty() ? 0 : 1);
}

TEST(OtherCopies, AnotherHighsMayBeLoadedFirst) {
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers refuse RTLD_DEEPBIND";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(solve_after_loading("highspy/libhighs.so.1"), testing::ExitedWithCode(0), "");
  // Brings release 1.12 of HiGHS.
  EXPECT_EXIT(solve_after_loading("ortools/.libs/libortools.so.*"), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle
