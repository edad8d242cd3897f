// Graph coarsening with operator fusion (GCOF): Moirai, section III-B and algorithm 1. Ops that an inference
// backend would fuse become one op of the coarsened graph, so that no plan tears them apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// A rule is a sequence of kinds; a kind is a name for one or several op types (docs/fusion-rules.md).
struct FusionRules {
  struct Rule {
    std::vector<std::string> kinds;  // at least two
    int line = 0;                    // of the text
  };
  std::vector<Rule> rules;
  std::map<std::string, std::string, std::less<>> kind_of_type;  // of the types that kinds were made for
};

// One rule or kind a line:
//   # a comment
//   conv = Convolution | GroupConvolution    a kind: its op types
//   conv bn relu                             a rule; a word that is no kind stands for the op type itself
// Errors name the line: a kind used before it is made or made twice, a type in two kinds, a rule of one word,
// a rule that is there twice, more than 16 words in a rule. O(text).
Result<FusionRules> parse_fusion_rules(std::string_view text);
Result<FusionRules> read_fusion_rules(const std::string& path);
// The rules of Moirai's table I, and the epilogues of matrix products.
const FusionRules& default_fusion_rules();
const char* default_fusion_rules_text();

struct Fusion {
  std::vector<int> group;  // per op, 0..k-1 in topological order of the groups' last ops: for coarsen()
  std::vector<int64_t> rule_uses;  // per rule, how many groups it formed
};
// Every group is a single op, or matches a rule. In a group, only its last op is read outside: an op joins
// its reader where that is its only one (direct and multi-input connections), never where several read it
// (multi-output). So groups are convex and the coarsened graph has no cycle. O((V + E) * longest rule).
Fusion fuse_ops(const Graph& graph, const FusionRules& rules);

}  // namespace heddle
