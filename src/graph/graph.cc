#include "heddle/graph/graph.h"

#include <algorithm>

namespace heddle {

double Graph::total_flops() const {
  double sum = 0;
  for (const auto& op : ops_) sum += op.flops;
  return sum;
}

int64_t Graph::total_param_bytes() const {
  int64_t sum = 0;
  for (const auto& p : params_) sum += p.bytes;
  return sum;
}

namespace {

// Binary search in an index that is sorted by name; -1 when absent.
template <class Item>
int32_t find_by_name(const std::vector<Item>& items, const std::vector<uint32_t>& by_name, std::string_view name) {
  const auto it = std::lower_bound(by_name.begin(), by_name.end(), name,
                                   [&](uint32_t i, std::string_view n) { return items[i].name < n; });
  return it != by_name.end() && items[*it].name == name ? static_cast<int32_t>(*it) : -1;
}

}  // namespace

OpId Graph::find_op(std::string_view name) const { return OpId(find_by_name(ops_, ops_by_name_, name)); }

TensorId Graph::find_tensor(std::string_view name) const {
  return TensorId(find_by_name(tensors_, tensors_by_name_, name));
}

}  // namespace heddle
