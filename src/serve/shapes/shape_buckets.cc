#include "heddle/serve/shape_buckets.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/size_buckets.h"

namespace heddle {
namespace {

constexpr int64_t kMostSize = int64_t{1} << 30;  // of a dimension

// The sizes of a dimension: one, or one for each bucket.
struct Sizes {
  std::vector<int64_t> all;
  bool listed = false;
};
using SizeLists = std::vector<Sizes>;

BucketShapes buckets_of(const std::map<std::string, SizeLists>& inputs, size_t count) {
  BucketShapes out;
  auto& buckets = out.shapes;
  buckets.resize(count);
  for (const auto& [name, lists] : inputs)
    for (const auto& sizes : lists) {
      for (size_t b = 0; b < count; ++b) buckets[b][name].push_back(sizes.all[sizes.all.size() == 1 ? 0 : b]);
      out.open[name].push_back(sizes.listed ? -1 : sizes.all.front());
    }
  std::sort(buckets.begin(), buckets.end(), [](const auto& x, const auto& y) {
    const double a = elements_of(x), b = elements_of(y);
    return a < b || (a == b && x < y);
  });
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  return out;
}

// How long all lists are: the number of buckets.
Result<size_t> bucket_count(const std::map<std::string, SizeLists>& inputs) {
  size_t count = 1;
  bool listed = false;
  for (const auto& [name, lists] : inputs)
    for (const auto& sizes : lists) {
      listed |= sizes.listed;
      if (sizes.all.size() == 1) continue;
      if (count != 1 && sizes.all.size() != count)
        return invalid_input("'" + name + "' has a list of " + std::to_string(sizes.all.size()) +
                             " sizes and another list has " + std::to_string(count) +
                             "; bucket number k has the k-th size of each list");
      count = sizes.all.size();
    }
  if (!listed) return invalid_input("no dimension has a list of sizes");
  if (count > static_cast<size_t>(kMostBuckets))
    return invalid_input(std::to_string(count) + " buckets, expected at most " +
                         std::to_string(kMostBuckets));
  return count;
}

std::optional<int64_t> size_from(std::string_view text) {
  const auto size = parse_number<int64_t>(text);
  return size && *size >= 1 && *size <= kMostSize ? size : std::nullopt;
}

// "1,3,48,{160,320}" to the sizes of each dimension; nothing where it is no such text.
std::optional<SizeLists> size_lists(const std::string& text) {
  SizeLists lists;
  size_t i = 0;
  while (i < text.size()) {
    const bool braces = text[i] == '{';
    const auto end = braces ? text.find('}', i) : std::min(text.find(',', i), text.size());
    if (end == std::string::npos) return std::nullopt;
    const size_t from = i + (braces ? 1 : 0);
    auto& sizes = lists.emplace_back();
    for (const auto& part : split_at(text.substr(from, end - from), ',')) {
      const auto size = size_from(part);
      if (!size) return std::nullopt;
      sizes.all.push_back(*size);
    }
    sizes.listed = braces;
    i = end + (braces ? 1 : 0);
    if (i == text.size()) return lists;
    if (text[i] != ',') return std::nullopt;
    ++i;
  }
  return std::nullopt;
}

// One line of a trace without its comment; nothing where it is malformed.
std::optional<ShapeCount> request_from(const std::vector<std::string>& words) {
  ShapeCount request;
  for (size_t w = 0; w < words.size(); ++w) {
    const auto& word = words[w];
    if (word.starts_with('*')) {
      const auto count = parse_number<double>(std::string_view(word).substr(1));
      if (w == 0 || w + 1 < words.size() || !count || !(*count > 0) || !std::isfinite(*count))
        return std::nullopt;
      request.count = *count;
      continue;
    }
    const auto equals = word.rfind('=');
    const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
    if (equals == 0 || request.shapes.contains(name)) return std::nullopt;
    auto& shape = request.shapes[name];
    for (const auto& part : split_at(word.substr(equals == std::string::npos ? 0 : equals + 1), ',')) {
      const auto size = size_from(part);
      if (!size) return std::nullopt;
      shape.push_back(*size);
    }
  }
  if (request.shapes.size() > 1 && request.shapes.contains("")) return std::nullopt;
  return request;
}

// Requests, of which equal ones are counted together, in the order of their first.
class Counted {
 public:
  void add(ShapeCount request) {
    const auto [it, fresh] = known_.emplace(request.shapes, all_.size());
    if (fresh)
      all_.push_back(std::move(request));
    else
      all_[it->second].count += request.count;
  }
  std::vector<ShapeCount> take() { return std::move(all_); }

 private:
  std::vector<ShapeCount> all_;
  std::map<NamedShapes, size_t> known_;
};

std::vector<std::string> words_of(std::string line) {
  line.resize(std::min(line.find('#'), line.size()));
  for (auto& c : line)
    if (c == '\t' || c == '\r') c = ' ';
  auto words = split_at(line, ' ');
  std::erase(words, "");
  return words;
}

}  // namespace

bool covers(const NamedShapes& large, const NamedShapes& small) {
  return std::ranges::all_of(small, [&large](const auto& input) {
    const auto& [name, shape] = input;
    const auto it = large.find(name);
    return it != large.end() &&
           std::equal(shape.begin(), shape.end(), it->second.begin(), it->second.end(), std::less_equal<>());
  });
}

Result<BucketShapes> parse_buckets(std::span<const std::string> texts) {
  std::map<std::string, SizeLists> inputs;
  for (const auto& text : texts) {
    const auto equals = text.rfind('=');
    const auto lists =
        equals == std::string::npos || equals == 0 ? std::nullopt : size_lists(text.substr(equals + 1));
    if (!lists)
      return invalid_input("--buckets " + text +
                           ": expected sizes from 1 and one list of them in braces, such as "
                           "'x=1,3,48,{160,320,640}', in quotes for the shell");
    if (!inputs.emplace(text.substr(0, equals), *lists).second)
      return invalid_input("--buckets " + text + ": the input '" + text.substr(0, equals) +
                           "' is given twice");
  }
  auto count = bucket_count(inputs);
  if (!count.ok())
    return invalid_input("--buckets " + texts.front() + ": " + count.error().message() +
                         "; expected such as 'x=1,3,48,{160,320,640}', in quotes for the shell");
  return buckets_of(inputs, *count);
}

Result<BucketShapes> buckets_from_json(const JsonCursor& json) {
  HEDDLE_RETURN_IF_ERROR(json.check_object());
  std::map<std::string, SizeLists> inputs;
  for (const auto& [name, value] : json.value().items()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto dimensions, json.member(name, value).elements(64));
    for (const auto& d : dimensions) {
      auto& sizes = inputs[name].emplace_back();
      if (d.value().is_array()) {
        HEDDLE_ASSIGN_OR_RETURN(sizes.all, d.as_ints(1, kMostSize));
        if (sizes.all.empty()) return d.error("expected at least one size");
        sizes.listed = true;
      } else {
        HEDDLE_ASSIGN_OR_RETURN(const auto size, d.as_int(1, kMostSize));
        sizes.all.push_back(size);
      }
    }
  }
  const auto count = bucket_count(inputs);
  if (!count.ok()) return json.error(count.error().message());
  return buckets_of(inputs, *count);
}

Result<std::vector<ShapeCount>> parse_shape_trace(const std::string& text) {
  Counted counted;
  size_t number = 0;
  for (const auto& line : split_at(text, '\n')) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    const auto request = request_from(words);
    if (!request)
      return invalid_input(
          "line " + std::to_string(number) + ": '" + line.substr(0, 100) +
          "' is not the shapes of a request; expected 1,3,48,213 or x=1,3,48,213 for each input, and "
          "perhaps *12 for how often it came");
    counted.add(*request);
  }
  auto requests = counted.take();
  if (requests.empty()) return invalid_input("it has no request; expected one a line, such as 1,3,48,213");
  return requests;
}

Result<std::vector<ShapeCount>> read_shape_trace(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path));
  return with_context(parse_shape_trace(text), path);
}

Result<double> parse_padding(const std::string& text) {
  if (text == "never") return -1.0;
  const auto limit = parse_number<double>(text);
  if (!limit || !(*limit >= 0) || !std::isfinite(*limit))
    return invalid_input(
        "padding '" + text +
        "': expected never, or how much padding may change an output, as a part of its largest "
        "value, such as 0.001");
  return *limit;
}

std::string shapes_text(const NamedShapes& shapes) {
  if (shapes.size() == 1) return shape_text(shapes.begin()->second);
  std::string text;
  for (const auto& [name, shape] : shapes) text += (text.empty() ? "" : " ") + name + "=" + shape_text(shape);
  return text;
}

double elements_of(const NamedShapes& shapes) {
  double all = 0;
  for (const auto& [name, shape] : shapes) {
    double elements = 1;
    for (const auto d : shape) elements *= static_cast<double>(d);
    all += elements;
  }
  return all;
}

Result<std::vector<ShapeCount>> with_names(std::vector<ShapeCount> requests,
                                           std::span<const std::string> inputs) {
  for (auto& r : requests) {
    if (const auto unnamed = r.shapes.extract(""); !unnamed.empty()) {
      if (inputs.size() != 1)
        return invalid_input("a request's shape has no name, and the model's inputs are " +
                             join_names(inputs) + "; write NAME=" + shape_text(unnamed.mapped()) +
                             " with commas");
      r.shapes[inputs.front()] = unnamed.mapped();
    }
    const auto& first = requests.front().shapes;
    const bool alike = std::equal(r.shapes.begin(), r.shapes.end(), first.begin(), first.end(),
                                  [](const auto& a, const auto& b) {
                                    return a.first == b.first && a.second.size() == b.second.size();
                                  });
    if (!alike)
      return invalid_input("a request has the shapes " + shapes_text(r.shapes) + " and the first one " +
                           shapes_text(first) + "; expected the same inputs and numbers of dimensions");
    for (const auto& [name, shape] : r.shapes)
      if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
        return invalid_input("a request has the input '" + name + "', which the model does not have" +
                             did_you_mean(name, inputs) + "; its inputs are " + join_names(inputs));
  }
  Counted counted;
  for (auto& r : requests) counted.add(std::move(r));
  return counted.take();
}

Result<std::vector<ShapeCount>> chain_of(std::vector<ShapeCount> requests) {
  std::sort(requests.begin(), requests.end(), [](const auto& x, const auto& y) {
    const double a = elements_of(x.shapes), b = elements_of(y.shapes);
    return a < b || (a == b && x.shapes < y.shapes);
  });
  for (size_t i = 1; i < requests.size(); ++i)
    if (!covers(requests[i].shapes, requests[i - 1].shapes))
      return invalid_input("the shapes " + shapes_text(requests[i - 1].shapes) + " and " +
                           shapes_text(requests[i].shapes) +
                           " vary in several dimensions apart from each other; give the buckets themselves");
  return requests;
}

}  // namespace heddle
