#include "worker_view.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>

#include "heddle/fleet/fleet.h"
#include "machine/fleet_files.h"
#include "machine/machine_devices.h"

namespace heddle {
namespace {

uint64_t whole_bytes(double bytes) { return bytes > 0 ? static_cast<uint64_t>(std::min(bytes, 1e15)) : 0; }

// What a role of a model with a file needs beyond the plan.
void make_computing(const Fleet& fleet, const Deployment& deployment, uint32_t v, int part,
                    worker::Role& role) {
  const auto& device = deployment.devices[v];
  const auto& c = fleet.classes[device.device_class];
  const size_t index = device.device - deployment.classes[device.device_class].first_device;
  role.set_computes(true);
  role.set_whole_device(device.device);
  role.set_part(static_cast<uint32_t>(part));
  if (index < c.devices.size()) role.set_device_name(c.devices[index]);
  role.set_slowdown(c.slowdown);
}

std::vector<worker::Role> roles_of(const Fleet& fleet, const Deployment& deployment) {
  std::vector<worker::Role> roles(deployment.devices.size());
  const auto parts = share_parts(deployment);
  for (const auto& p : deployment.pipelines) {
    const auto& model = fleet.models[p.model];
    for (size_t k = 0; k < p.partitions.size(); ++k) {
      const auto& pool = p.partitions[k];
      for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
        auto& role = roles[v];
        role.set_device(v);
        role.set_model(pool.role.model);
        role.set_block_from(static_cast<uint32_t>(pool.role.block_from));
        role.set_block_to(static_cast<uint32_t>(pool.role.block_to));
        role.set_device_class(pool.role.device_class);
        role.set_share(static_cast<uint32_t>(pool.role.share));
        role.set_first(k == 0);
        role.set_last(k + 1 == p.partitions.size());
        const auto cut = static_cast<size_t>(pool.role.block_to);
        if (cut < model.cut_bytes.size()) role.set_output_bytes(whole_bytes(model.cut_bytes[cut]));
        if (!model.file.path.empty()) make_computing(fleet, deployment, v, parts[v], role);
      }
    }
  }
  return roles;
}

std::map<std::string, worker::ModelFile> files_of(const Fleet& fleet, const Deployment& deployment) {
  std::map<std::string, worker::ModelFile> files;
  for (uint32_t m = 0; m < deployment.models.size(); ++m) {
    const auto& from = fleet.models[m].file;
    if (from.path.empty()) continue;
    auto& file = files[deployment.models[m].name];
    file.set_name(deployment.models[m].name);
    std::error_code error;
    const auto absolute = std::filesystem::absolute(from.path, error);
    file.set_path(error ? from.path : absolute.string());
    file.set_hash(from.hash);
    for (const auto& [name, shape] : from.shapes) {
      auto& sizes = (*file.mutable_shapes())[name];
      for (const auto size : shape) sizes.add_sizes(size);
    }
    for (const int block : from.block_of) file.add_block_of(static_cast<uint32_t>(block));
    file.set_fp16_cuts(from.fp16_cuts);
    file.set_max_batch(static_cast<uint32_t>(largest_batch(deployment, m)));
  }
  return files;
}

}  // namespace

DevicePlaces::DevicePlaces(const Deployment& deployment) {
  for (const auto& v : deployment.devices) {
    device_of_.push_back(v.device);
    if (v.device >= class_of_.size()) class_of_.resize(v.device + 1);
    class_of_[v.device] = deployment.classes[v.device_class].name;
  }
  owner_.resize(class_of_.size());
}

void DevicePlaces::assign(const Capacities& there) {
  auto free = there;
  for (size_t d = 0; d < owner_.size(); ++d)
    if (const auto it = free.find(owner_[d]); it != free.end() && --it->second[class_of_[d]] < 0) {
      // It has come back with fewer.
      ++it->second[class_of_[d]];
      owner_[d].clear();
    }
  for (size_t d = 0; d < owner_.size(); ++d) {
    if (class_of_[d].empty() || there.contains(owner_[d])) continue;
    std::string best;
    int64_t most = 0;
    for (auto& [name, devices] : free) {
      const auto it = devices.find(class_of_[d]);
      if (it == devices.end() || it->second <= most) continue;
      most = it->second;
      best = name;
    }
    if (best.empty()) continue;
    owner_[d] = best;
    --free[best][class_of_[d]];
  }
}

std::map<std::string, int64_t> DevicePlaces::missing(const Capacities& there) const {
  std::map<std::string, int64_t> out;
  for (size_t d = 0; d < owner_.size(); ++d)
    if (!class_of_[d].empty() && !there.contains(owner_[d])) ++out[class_of_[d]];
  return out;
}

WorkerView::WorkerView(uint64_t number, const Fleet& fleet, const Deployment& deployment)
    : generation(number),
      roles(roles_of(fleet, deployment)),
      files(files_of(fleet, deployment)),
      places(deployment),
      loaded(deployment.devices.size(), 0),
      asked(deployment.devices.size(), 0),
      before(deployment.devices.size(), 0),
      place(deployment.devices.size()),
      refused(deployment.devices.size()) {}

worker::ToWorker WorkerView::load_of(const std::vector<uint32_t>& devices) const {
  worker::ToWorker message;
  auto& load = *message.mutable_load();
  load.set_generation(generation);
  std::set<std::string> models;
  for (const uint32_t v : devices) {
    *load.add_roles() = roles[v];
    if (roles[v].computes()) models.insert(roles[v].model());
  }
  for (const auto& name : models) *load.add_models() = files.at(name);
  return message;
}

std::string WorkerView::overlap(uint32_t device, bool forbidden) const {
  const auto& here = place[device];
  for (uint32_t v = 0; v < loaded.size(); ++v) {
    const auto& there = place[v];
    if (!loaded[v] || places.worker_of(v) == places.worker_of(device) || here.host().empty() ||
        there.host() != here.host() || (forbidden && here.shared() && there.shared()))
      continue;
    for (const auto core : here.cores())
      if (std::find(there.cores().begin(), there.cores().end(), core) != there.cores().end())
        return "core " + std::to_string(core) + " is also in a device of worker '" + places.worker_of(v) +
               "' on this host";
  }
  return {};
}

void WorkerView::listen(RemoteListener* listener) {
  const std::unique_lock lock(listener_mutex_);
  listener_ = listener;
}

void WorkerView::forward(const RemoteAnswer& answer) {
  const std::shared_lock lock(listener_mutex_);
  if (listener_ != nullptr) listener_->answered(answer);
}

void WorkerView::report_running(uint64_t attempt, TimeNs elapsed, TimeNs waited) {
  const std::shared_lock lock(listener_mutex_);
  if (listener_ != nullptr) listener_->still_running(attempt, elapsed, waited);
}

void WorkerView::forward(const std::vector<uint32_t>& devices, bool back) {
  const std::shared_lock lock(listener_mutex_);
  if (listener_ == nullptr) return;
  for (const uint32_t v : devices) {
    if (back) {
      listener_->remote_back(v);
    } else {
      listener_->remote_lost(v);
    }
  }
}

}  // namespace heddle
