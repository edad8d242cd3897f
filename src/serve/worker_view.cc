#include "worker_view.h"

#include <cmath>
#include <mutex>

#include "heddle/fleet/fleet.h"

namespace heddle {
namespace {

uint64_t whole_bytes(double bytes) { return bytes > 0 ? static_cast<uint64_t>(std::min(bytes, 1e15)) : 0; }

std::vector<worker::Role> roles_of(const Fleet& fleet, const Deployment& deployment) {
  std::vector<worker::Role> roles(deployment.devices.size());
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
      }
    }
  }
  return roles;
}

}  // namespace

WorkerView::WorkerView(uint64_t number, const Fleet& fleet, const Deployment& deployment)
    : generation(number),
      roles(roles_of(fleet, deployment)),
      places(deployment),
      loaded(deployment.devices.size(), 0),
      asked(deployment.devices.size(), 0) {}

void WorkerView::listen(RemoteListener* listener) {
  const std::unique_lock lock(listener_mutex_);
  listener_ = listener;
}

void WorkerView::tell(const RemoteAnswer& answer) {
  const std::shared_lock lock(listener_mutex_);
  if (listener_ != nullptr) listener_->answered(answer);
}

void WorkerView::tell(const std::vector<uint32_t>& devices, bool back) {
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
