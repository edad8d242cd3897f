// Graph coarsening with operator fusion (GCOF): Moirai, section III-B and algorithm 1. Ops that an inference
// backend would fuse become one op of the coarsened graph, so that no plan splits them.
#pragma once

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
    int line = 0;                    // line number in the rules' text
  };
  std::vector<Rule> rules;
  std::map<std::string, std::string, std::less<>> kind_of_type;  // for each op type that a kind lists
};

// The text has one rule or kind per line:
//   # a comment
//   conv = Convolution | GroupConvolution    a kind: its op types
//   conv bn relu                             a rule; a word that is no kind stands for the op type itself
// Errors name the line. Rejected: a kind defined twice or after its first use, a type in two kinds, a rule of
// one word or of more than 16, a duplicate rule. O(text).
Result<FusionRules> parse_fusion_rules(std::string_view text);
Result<FusionRules> read_fusion_rules(const std::string& path);
// The rules of Moirai's table I, plus bias and activation after a matrix product and similar epilogues.
const FusionRules& default_fusion_rules();

// The group of each op, 0..k-1 in topological order of the groups' last ops: the input of coarsen(). Every
// group is a single op or matches a rule. Only the last op of a group is read outside it: an op joins its
// reader if it has no other (direct and multi-input connections), and never if several ops read it
// (multi-output). So groups are convex and the coarsened graph has no cycle. O((V + E) * longest rule).
std::vector<int> fuse_ops(const Graph& graph, const FusionRules& rules);

}  // namespace heddle
