// Which core sets of one size are measured apart.
#include "core_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle {
namespace {

using testing::ElementsAre;

using Sets = std::vector<std::vector<int>>;

TEST(CoreKinds, EqualCoresHaveNone) {
  const auto alone = [](int cpu) { return CorePlace{0, cpu, ""}; };
  EXPECT_THAT(core_kinds({{0, 1, 2, 3}, {0, 1}, {2, 3}, {0}, {1}, {2}, {3}}, alone),
              ElementsAre("", "", "", "", "", "", ""));
  // Two logical CPUs of each physical core, all sets alike.
  const auto pairs = [](int cpu) { return CorePlace{0, cpu / 2, ""}; };
  EXPECT_THAT(core_kinds({{0, 1, 2, 3}, {0, 1}, {2, 3}}, pairs), ElementsAre("", "", ""));
}

TEST(CoreKinds, TwoThreadsOfOneCoreAreNotTwoCores) {
  const auto pairs = [](int cpu) { return CorePlace{0, cpu / 2, ""}; };
  // Of three physical cores: 0 and 1 are one, 2 and 3 are another.
  EXPECT_THAT(core_kinds({{0, 1, 2, 3, 4, 5}, {0, 1, 2}, {3, 4, 5}, {0, 1}, {1, 2}, {0}}, pairs),
              ElementsAre("", "", "", "1p", "2p", ""));
}

TEST(CoreKinds, FastAndSlowCoresAreApart) {
  const auto hybrid = [](int cpu) { return CorePlace{0, cpu, cpu < 2 ? "core" : "atom"}; };
  EXPECT_THAT(core_kinds({{0, 1, 2, 3}, {0, 1}, {2, 3}, {1, 2}, {0}, {3}}, hybrid),
              ElementsAre("", "core2p", "atom2p", "atom1p+core1p", "core1p", "atom1p"));
}

}  // namespace
}  // namespace heddle
