// Parser and defaults of the fusion rule language (docs/fusion-rules.md).
#include <iterator>
#include <set>
#include <sstream>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/graph/gcof.h"

namespace heddle {
namespace {

constexpr size_t kMostWords = 16, kMostRules = 10'000;

// The first three are Moirai's table I. The others are epilogues that inference backends fuse into a matrix
// product or a normalisation: a bias, an activation.
constexpr const char* kDefaultRules = R"(# kinds of ops
conv = Convolution | GroupConvolution | Conv
bn   = BatchNormInference | BatchNormalization
add  = Add
relu = Relu | PRelu | Clamp
matmul = MatMul | FullyConnected | Gemm
mul  = Multiply | Mul

# Moirai, table I
conv bn
conv bn relu
conv bn add relu

# convolutions whose normalisation was folded into their weights
conv add
conv add relu
conv relu

# bias and activation behind a matrix product; scale and shift of a normalisation
matmul add
matmul add relu
mul add
)";

// The words of a line without its comment; '=' and '|' are words of their own.
std::vector<std::string> words_of(const std::string& line) {
  std::string spaced;
  for (const char c : line.substr(0, line.find('#')))
    spaced += c == '=' || c == '|' ? std::string{' ', c, ' '} : std::string(1, c);
  std::istringstream in(spaced);
  return {std::istream_iterator<std::string>(in), {}};
}

class RuleParser {
 public:
  Result<FusionRules> run(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      const auto words = words_of(line);
      if (words.empty()) continue;
      HEDDLE_RETURN_IF_ERROR(words.size() > 1 && words[1] == "=" ? kind(words) : rule(words));
    }
    return std::move(out_);
  }

 private:
  Error wrong(const std::string& what) const {
    return invalid_input("line " + std::to_string(line_) + ": " + what);
  }
  static bool is_name(const std::string& word) { return word != "=" && word != "|"; }

  Status kind(const std::vector<std::string>& words) {
    const auto& name = words[0];
    if (!is_name(name) || words.size() < 3) return wrong("expected KIND = TYPE | TYPE ...");
    if (!kinds_.insert(name).second) return wrong("kind '" + name + "' is made twice");
    if (used_.contains(name))
      return wrong("kind '" + name + "' is made after a rule that uses the word; move it up");
    for (size_t i = 2; i < words.size(); ++i) {
      const bool type = i % 2 == 0;
      if (type != is_name(words[i])) return wrong("expected KIND = TYPE | TYPE ...");
      if (!type && words[i] != "|") return wrong("expected '|' between types, not '" + words[i] + "'");
      if (!type) continue;
      const auto [it, fresh] = out_.kind_of_type.try_emplace(words[i], name);
      if (!fresh) return wrong("type '" + words[i] + "' is of kind '" + it->second + "' already");
    }
    if (words.size() % 2 == 0) return wrong("expected a type after '|'");
    return {};
  }

  Status rule(const std::vector<std::string>& words) {
    for (const auto& word : words) {
      if (!is_name(word)) return wrong("'" + word + "' has no place in a rule; expected KIND KIND ...");
      const auto typed = out_.kind_of_type.find(word);
      if (typed != out_.kind_of_type.end() && typed->second != word)
        return wrong("'" + word + "' is a type of kind '" + typed->second + "'; name the kind");
      used_.insert(word);
    }
    if (words.size() < 2) return wrong("a rule needs two kinds at least; '" + words[0] + "' fuses nothing");
    if (words.size() > kMostWords)
      return wrong("a rule of " + std::to_string(words.size()) + " kinds; at most 16 are allowed");
    if (out_.rules.size() >= kMostRules) return wrong("more than 10,000 rules");
    if (!rules_.insert(words).second) return wrong("the rule is there twice");
    out_.rules.push_back({words, line_});
    return {};
  }

  FusionRules out_;
  std::set<std::string> kinds_, used_;
  std::set<std::vector<std::string>> rules_;
  int line_ = 0;
};

}  // namespace

Result<FusionRules> parse_fusion_rules(std::string_view text) { return RuleParser().run(text); }

Result<FusionRules> read_fusion_rules(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path));
  auto rules = parse_fusion_rules(text);
  if (!rules.ok()) return std::move(rules).error().with_context(path);
  if (rules->rules.empty()) return invalid_input(path + ": no rules; expected lines like 'conv bn relu'");
  return rules;
}

const FusionRules& default_fusion_rules() {
  static const FusionRules rules = parse_fusion_rules(kDefaultRules).value();
  return rules;
}

}  // namespace heddle
