#include "json_mutator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/base/random.h"
#include "mutator.h"

// A target's own definition replaces this one.
[[gnu::weak]] JsonPlace json_place(std::string_view input) { return {0, input.size()}; }

namespace {

using heddle::Json;
using heddle::Random;

constexpr size_t kMostNodes = 1 << 14;   // of a tree that is mutated
constexpr size_t kMostValuesOfKey = 16;  // that are remembered from the seeds
constexpr int kTries = 4;                // for a result that is small enough

const Json& limit_number(Random& random) {
  static const std::vector<Json> kNumbers = {
      0,        -1,           1,        2,          3,          -0.0,         0.5,
      1e-300,   5e-324,       1e308,    -1e308,     1e18,       1e15,         0x7f,
      0xff,     0x7fff,       0xffff,   0x7fffffff, 0x80000000, -0x80000000L, 0xffffffff,
      1L << 32, 1L << 53,     1L << 62, INT64_MAX,  INT64_MIN,  1UL << 63,    UINT64_MAX,
      9.3e18,   1.8446744e19, 1e-9,     0.99999999, 1.0000001,  255,          256,
      257,      1024,         65536,    1 << 20,    1000000,    (1 << 24) + 1};
  return kNumbers[random.below(kNumbers.size())];
}

const Json& odd_text(Random& random) {
  static const std::vector<Json> kTexts = {"",
                                           "NaN",
                                           "nan",
                                           "inf",
                                           "-inf",
                                           "1e400",
                                           "-1",
                                           "0x10",
                                           "null",
                                           "true",
                                           " ",
                                           "a",
                                           "*",
                                           "~",
                                           ".",
                                           "..",
                                           "/",
                                           "%s",
                                           "\n",
                                           "\x7f",
                                           "\u00e9",
                                           "a b",
                                           "a,b",
                                           std::string("a\0b", 3),
                                           std::string(300, 'x')};
  return kTexts[random.below(kTexts.size())];
}

Json other_value(Random& random) {
  switch (random.below(7)) {
    case 0:
      return nullptr;
    case 1:
      return random.below(2) == 0;
    case 2:
      return Json::array();
    case 3:
      return Json::object();
    case 4:
      return odd_text(random);
    default:
      return limit_number(random);
  }
}

// A value of a tree, the container that holds it, and its place there.
struct Node {
  Json* value = nullptr;
  Json* holder = nullptr;  // null: the root
  size_t at = 0;
};

std::vector<Node> nodes_of(Json& root) {
  std::vector<Node> nodes = {{&root, nullptr, 0}};
  for (size_t next = 0; next < nodes.size() && nodes.size() < kMostNodes; ++next) {
    Json* const value = nodes[next].value;
    size_t at = 0;
    if (value->is_structured())
      for (auto& child : *value) nodes.push_back({&child, value, at++});
  }
  return nodes;
}

// The members of the seeds.
class KnownMembers {
 public:
  void learn(Json& tree) {
    for (const auto& node : nodes_of(tree)) {
      if (!node.value->is_object()) continue;
      for (const auto& [key, value] : node.value->items()) {
        auto& values = values_[key];
        if (values.size() < kMostValuesOfKey &&
            std::find(values.begin(), values.end(), value) == values.end())
          values.push_back(value);
      }
    }
  }
  bool empty() const { return values_.empty(); }
  std::string key(Random& random) const { return any(random).first; }
  std::pair<std::string, Json> member(Random& random) const {
    const auto& [key, values] = any(random);
    return {key, values[random.below(values.size())]};
  }
  // Null: the key is not known.
  const Json* value_of(const std::string& key, Random& random) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second[random.below(it->second.size())];
  }

 private:
  const std::pair<const std::string, std::vector<Json>>& any(Random& random) const {
    return *std::next(values_.begin(), static_cast<long>(random.below(values_.size())));
  }
  std::map<std::string, std::vector<Json>> values_;
};

KnownMembers& known() {
  static KnownMembers members;
  return members;
}

// ordered_json keeps members in a vector, whose places can be counted.
Json::object_t::iterator member_at(Json& object, size_t at) {
  return object.get_ref<Json::object_t&>().begin() + static_cast<long>(at);
}

// The key is const in its place: the members are built anew.
void rename(Json& object, size_t at, const std::string& key) {
  Json renamed = Json::object();
  size_t i = 0;
  for (const auto& [old, value] : object.items()) renamed[i++ == at ? key : old] = value;
  object = std::move(renamed);
}

void insert_beside(const Node& node, const Json& value, const std::string& key) {
  if (node.holder->is_array()) {
    node.holder->insert(node.holder->begin() + static_cast<long>(node.at), value);
  } else {
    (*node.holder)[key] = value;
  }
}

void change_text(Json& value, Random& random) {
  auto text = value.get<std::string>();
  change_bytes(text);
  value = random.below(3) == 0 ? odd_text(random) : Json(std::move(text));
}

void change_number(Json& value, Random& random) {
  if (value.is_number_integer() && random.below(2) == 0) {
    const auto number = value.get<uint64_t>();
    const uint64_t changed[] = {number + 1, number - 1, number * 2, number / 2, ~number + 1};
    const uint64_t chosen = changed[random.below(std::size(changed))];
    value = random.below(8) == 0 ? Json(chosen) : Json(static_cast<int64_t>(chosen));
  } else if (value.is_number_float() && random.below(2) == 0) {
    const auto number = value.get<double>();
    const double changed[] = {number * 2, number / 2, -number, number + 1, number * 1e6, number * 1e-6};
    value = changed[random.below(std::size(changed))];
  } else {
    value = limit_number(random);
  }
}

// Of values that hold no others, if one is soon found.
const Node& leaf_of(const std::vector<Node>& nodes, Random& random) {
  const Node* node = &nodes[random.below(nodes.size())];
  for (int i = 0; i < 8 && node->value->is_structured(); ++i) node = &nodes[random.below(nodes.size())];
  return *node;
}

void change_value(Json& value, Random& random) {
  if (random.below(8) == 0) {
    value = other_value(random);
  } else if (value.is_number()) {
    change_number(value, random);
  } else if (value.is_string()) {
    change_text(value, random);
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_structured() && !value.empty()) {
    value.clear();
  } else {
    value = other_value(random);
  }
}

void nest(Json& value, Random& random) {
  if (value.is_structured() && !value.empty() && random.below(2) == 0) {
    const Json inner = *std::next(value.begin(), static_cast<long>(random.below(value.size())));
    value = inner;
  } else if (random.below(2) == 0 || known().empty()) {
    value = Json::array({value});
  } else {
    value = Json{{known().key(random), value}};
  }
}

void repeat(const Node& node, Random& random) {
  const Json copy = *node.value;
  const size_t times = random.below(8) == 0 ? 1 + random.below(32) : 1;
  for (size_t i = 0; i < times; ++i) {
    const auto key =
        node.holder->is_object() ? member_at(*node.holder, node.at)->first + std::to_string(i) : "";
    insert_beside(node, copy, key);
  }
}

void remove(const Node& node) {
  if (node.holder->is_array()) {
    node.holder->erase(node.at);
  } else {
    node.holder->erase(member_at(*node.holder, node.at)->first);
  }
}

void swap_siblings(const Node& node, Random& random) {
  auto& other = *std::next(node.holder->begin(), static_cast<long>(random.below(node.holder->size())));
  std::swap(*node.value, other);
}

void add_known(Json& root, const Node& node, Random& random) {
  if (known().empty()) return;
  Json& to = node.value->is_object() ? *node.value : root;
  if (!to.is_object()) return;
  const auto [key, value] = known().member(random);
  to[key] = value;
}

// A value that a seed has under the same key.
void take_known(const Node& node, Random& random) {
  if (!node.holder->is_object()) return;
  if (const auto* value = known().value_of(member_at(*node.holder, node.at)->first, random))
    *node.value = *value;
}

void change_tree(Json& root, Random& random) {
  const auto nodes = nodes_of(root);
  const auto& node = nodes[random.below(nodes.size())];
  const auto kind = random.below(14);
  if (kind < 5) return change_value(*leaf_of(nodes, random).value, random);
  if (kind < 6 || node.holder == nullptr) return add_known(root, node, random);
  switch (kind) {
    case 6:
      return remove(node);
    case 7:
      return repeat(node, random);
    case 8:
      return swap_siblings(node, random);
    case 9:
      if (node.holder->is_object() && !known().empty()) rename(*node.holder, node.at, known().key(random));
      return;
    case 10:
    case 11: {
      const Json copy = *nodes[random.below(nodes.size())].value;
      if (random.below(2) == 0) {
        *node.value = copy;
      } else {
        insert_beside(node, copy, known().empty() ? "copy" : known().key(random));
      }
      return;
    }
    case 12:
      return nest(*node.value, random);
    default:
      return take_known(node, random);
  }
}

std::optional<Json> parse(std::string_view input, JsonPlace place) {
  auto tree = Json::parse(input.substr(place.begin, place.end - place.begin), nullptr, false);
  if (tree.is_discarded()) return std::nullopt;
  return tree;
}

// The input with another tree in its place; 0: it would be too large.
size_t write(std::string_view input, JsonPlace place, const Json& tree, uint8_t* to, size_t max_size) {
  const std::string text = tree.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string whole =
      std::string(input.substr(0, place.begin)) + text + std::string(input.substr(place.end));
  if (whole.size() > max_size) return 0;
  std::memcpy(to, whole.data(), whole.size());
  return whole.size();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (const auto& seed : seeds_of(*argc, *argv))
    if (auto tree = parse(seed, json_place(seed))) known().learn(*tree);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Random random(seed);
  const std::string input(view_of(data, size));
  const auto place = json_place(input);
  const auto tree = parse(input, place);
  if (!tree || random.below(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (int i = 0; i < kTries; ++i) {
    Json changed = *tree;
    for (auto changes = 1 + random.below(3); changes > 0; --changes) change_tree(changed, random);
    if (const size_t written = write(input, place, changed, data, max_size); written > 0) return written;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

// A part of the second tree takes a place in the first.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_size, unsigned int seed) {
  Random random(seed);
  const auto first = view_of(data1, size1), second = view_of(data2, size2);
  const auto place = json_place(first);
  auto into = parse(first, place);
  auto from = parse(second, json_place(second));
  if (!into || !from) return 0;
  const auto givers = nodes_of(*from), places = nodes_of(*into);
  const auto& giver = givers[random.below(givers.size())];
  const auto& taker = places[random.below(places.size())];
  if (taker.holder == nullptr || random.below(2) == 0) {
    const bool member = giver.holder != nullptr && giver.holder->is_object() && taker.value->is_object();
    Json& to = member ? (*taker.value)[member_at(*giver.holder, giver.at)->first] : *taker.value;
    to = Json(*giver.value);
  } else {
    insert_beside(taker, *giver.value, known().empty() ? "copy" : known().key(random));
  }
  return write(first, place, *into, out, max_size);
}
