// Differences of files by lines, as `diff -u` writes them.
#include <algorithm>
#include <set>
#include <sstream>

#include "heddle/deploy/render.h"

namespace heddle {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct Edit {
  char kind;  // ' ', '-', '+'
  const std::string* line;
};

// Lines that both have in common before and behind the change stay out of the table, whose size is the product of the
// rest. Beyond the limit the rest counts as replaced as a whole.
std::vector<Edit> edits_between(const Lines& a, const Lines& b) {
  constexpr size_t kMostCells = 25'000'000;
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const size_t n = a.size() - head - tail, m = b.size() - head - tail;
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({' ', &a[i]});
  size_t i = 0, j = 0;
  if (n > 0 && m > 0 && n * m <= kMostCells) {
    // common[i][j]: the longest common subsequence of what follows.
    std::vector<uint32_t> common((n + 1) * (m + 1), 0);
    const auto at = [&common, m](size_t x, size_t y) -> uint32_t& { return common[x * (m + 1) + y]; };
    for (size_t x = n; x-- > 0;)
      for (size_t y = m; y-- > 0;)
        at(x, y) = a[head + x] == b[head + y] ? at(x + 1, y + 1) + 1 : std::max(at(x + 1, y), at(x, y + 1));
    while (i < n && j < m) {
      if (a[head + i] == b[head + j]) {
        edits.push_back({' ', &a[head + i]});
        ++i, ++j;
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        edits.push_back({'-', &a[head + i++]});
      } else {
        edits.push_back({'+', &b[head + j++]});
      }
    }
  }
  while (i < n) edits.push_back({'-', &a[head + i++]});
  while (j < m) edits.push_back({'+', &b[head + j++]});
  for (size_t k = a.size() - tail; k < a.size(); ++k) edits.push_back({' ', &a[k]});
  return edits;
}

// A hunk's range counts from 1, and names the line before an empty one.
std::string range_text(size_t first, size_t count) {
  return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
}

std::string unified(const std::vector<Edit>& edits) {
  constexpr size_t kContext = 3;
  std::string out;
  size_t at_a = 0, at_b = 0, done = 0;  // `done` edits are counted in at_a and at_b
  const auto pass = [&](size_t to) {
    for (; done < to; ++done) {
      at_a += edits[done].kind != '+';
      at_b += edits[done].kind != '-';
    }
  };
  for (size_t e = 0; e < edits.size();) {
    if (edits[e].kind == ' ') {
      ++e;
      continue;
    }
    // The hunk ends where more equal lines follow than its context and that of the next one.
    size_t last = e;
    for (size_t k = e; k < edits.size() && k <= last + 2 * kContext; ++k)
      if (edits[k].kind != ' ') last = k;
    const size_t begin = std::max(done, e - std::min(e, kContext)),
                 end = std::min(edits.size(), last + 1 + kContext);
    pass(begin);
    const size_t from_a = at_a, from_b = at_b;
    std::string body;
    for (size_t k = begin; k < end; ++k) body += edits[k].kind + *edits[k].line + "\n";
    pass(end);
    out += "@@ -" + range_text(from_a, at_a - from_a) + " +" + range_text(from_b, at_b - from_b) + " @@\n" +
           body;
    e = end;
  }
  return out;
}

}  // namespace

std::vector<FileDifference> deployment_differences(const DeployFiles& old_files,
                                                   const DeployFiles& new_files) {
  std::set<std::string> paths;
  for (const auto& [path, text] : old_files) paths.insert(path);
  for (const auto& [path, text] : new_files) paths.insert(path);
  std::vector<FileDifference> out;
  for (const auto& path : paths) {
    const auto before = old_files.find(path), after = new_files.find(path);
    const bool added = before == old_files.end(), removed = after == new_files.end();
    if (!added && !removed && before->second == after->second) continue;
    const Lines a = added ? Lines() : lines_of(before->second),
                b = removed ? Lines() : lines_of(after->second);
    out.push_back({path,
                   added     ? "added"
                   : removed ? "removed"
                             : "changed",
                   "--- " + (added ? "/dev/null" : "a/" + path) + "\n+++ " +
                       (removed ? "/dev/null" : "b/" + path) + "\n" + unified(edits_between(a, b))});
  }
  return out;
}

}  // namespace heddle
