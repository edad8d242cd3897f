#include "load_model.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

double power8(double x) {
  x *= x;
  x *= x;
  return x * x;
}

}  // namespace

LoadModel::LoadModel(const FlatProblem& flat)
    : flat_(flat),
      groups_at_(flat.num_devices()),
      resources_at_(groups_at_ + flat.core_groups().size()),
      device_(flat.num_ops(), -1),
      readers_(flat.num_tensors() * flat.num_devices(), 0),
      load_(resources_at_ + flat.num_resources(), 0),
      groups_of_(flat.num_devices()) {
  for (uint32_t g = 0; g < flat.core_groups().size(); ++g) {
    for (const uint32_t i : flat.core_groups()[g]) groups_of_[i].push_back(g);
  }
  double total = 0;
  for (const double us : flat.least_us()) total += us;
  if (total > 0 && total < kImpossible) scale_ = total;
}

void LoadModel::add(size_t resource, double us) {
  double& load = load_[resource];
  powers_ -= power8(load / scale_);
  load += us;
  powers_ += power8(load / scale_);
}

void LoadModel::add_way(const RoutedTransfer& way, double us) {
  for (const uint32_t r : way.resources) add(resources_at_ + r, us);
}

// One reader more (or fewer) of the tensor on a device: the first one there brings a transfer, the last one
// takes it away.
void LoadModel::count_reader(uint32_t tensor, uint32_t device, int by) {
  int32_t& readers = readers_[tensor * flat_.num_devices() + device];
  const bool was = readers > 0;
  readers += by;
  if (was == (readers > 0)) return;
  const int32_t from = device_[flat_.producer(tensor)];
  if (from < 0) return;
  const auto& way = flat_.way(static_cast<size_t>(from), device);
  if (way.passage == Passage::kRoute) add_way(way, by * way.time_us(flat_.bytes(tensor)));
}

void LoadModel::move_outputs(uint32_t op, uint32_t from, double sign) {
  const size_t k = flat_.num_devices();
  for (const uint32_t t : flat_.outputs(op)) {
    for (size_t to = 0; to < k; ++to) {
      if (readers_[t * k + to] == 0) continue;
      const auto& way = flat_.way(from, to);
      if (way.passage == Passage::kRoute) add_way(way, sign * way.time_us(flat_.bytes(t)));
    }
  }
}

void LoadModel::put(uint32_t op, int32_t device) {
  const int32_t old = device_[op];
  if (old == device) return;
  if (old >= 0) {
    const auto from = static_cast<uint32_t>(old);
    for (const uint32_t t : flat_.inputs(op)) count_reader(t, from, -1);
    move_outputs(op, from, -1);
    add(from, -flat_.us(op, from));
    for (const uint32_t g : groups_of_[from]) add(groups_at_ + g, -flat_.us(op, from));
  }
  device_[op] = device;
  if (device < 0) return;
  const auto to = static_cast<uint32_t>(device);
  for (const uint32_t t : flat_.inputs(op)) count_reader(t, to, 1);
  move_outputs(op, to, 1);
  add(to, flat_.us(op, to));
  for (const uint32_t g : groups_of_[to]) add(groups_at_ + g, flat_.us(op, to));
}

bool LoadModel::possible(uint32_t op, uint32_t device) const {
  if (!(flat_.us(op, device) < kImpossible)) return false;
  for (const uint32_t t : flat_.inputs(op)) {
    const int32_t from = device_[flat_.producer(t)];
    if (from >= 0 && flat_.way(static_cast<size_t>(from), device).passage == Passage::kNone) return false;
  }
  for (const uint32_t t : flat_.outputs(op)) {
    for (size_t to = 0; to < flat_.num_devices(); ++to) {
      if (readers_[t * flat_.num_devices() + to] > 0 && flat_.way(device, to).passage == Passage::kNone)
        return false;
    }
  }
  return true;
}

double LoadModel::period_us() const {
  return load_.empty() ? 0 : std::max(0.0, *std::max_element(load_.begin(), load_.end()));
}

uint32_t LoadModel::busiest() const {
  return static_cast<uint32_t>(
      std::max_element(load_.begin(), load_.begin() + static_cast<long>(groups_at_)) - load_.begin());
}

double LoadModel::norm_us() const { return scale_ * std::pow(std::max(0.0, powers_), 0.125); }

void LoadModel::refresh() {
  std::vector<int32_t> devices = device_;
  for (uint32_t v = 0; v < devices.size(); ++v) put(v, -1);
  std::fill(load_.begin(), load_.end(), 0.0);
  powers_ = 0;
  for (uint32_t v = 0; v < devices.size(); ++v) put(v, devices[v]);
}

}  // namespace heddle
