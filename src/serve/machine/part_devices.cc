#include "part_devices.h"

#include <algorithm>
#include <filesystem>

#include "heddle/base/spelling.h"
#include "heddle/runtime/backend.h"

namespace heddle {
namespace {

constexpr size_t kKeptPlans = 64;

Result<FleetModelFile> file_of(const worker::ModelFile& from, const worker::Role& role,
                               const std::string& folder) {
  FleetModelFile file;
  file.path = from.path();
  if (!folder.empty())
    file.path = (std::filesystem::path(folder) / std::filesystem::path(from.path()).filename()).string();
  file.hash = from.hash();
  file.fp16_cuts = from.fp16_cuts();
  for (const auto& [name, dimensions] : from.shapes())
    file.shapes[name] = Shape(dimensions.sizes().begin(), dimensions.sizes().end());
  for (const uint32_t block : from.block_of()) {
    if (block >= static_cast<uint32_t>(kMaxBlocks))
      return invalid_input("block " + std::to_string(block) + " of model '" + from.name() + "'");
    file.block_of.push_back(static_cast<int>(block));
  }
  if (role.block_from() >= role.block_to() || role.block_to() > static_cast<uint32_t>(kMaxBlocks) ||
      from.max_batch() < 1 || from.max_batch() > static_cast<uint32_t>(kMaxFleetBatch) || role.share() < 1 ||
      role.share() > static_cast<uint32_t>(kMaxShare) || !(role.slowdown() <= 1e6))
    return invalid_input("the part's blocks, batch, share or slowdown are out of range");
  return file;
}

}  // namespace

bool is_closed(uint64_t generation, const worker::Load& load) {
  const auto& open = load.open();
  return !open.empty() && generation < *std::max_element(open.begin(), open.end()) &&
         std::find(open.begin(), open.end(), generation) == open.end();
}

PartDevice::PartDevice(std::shared_ptr<PlanRunner> runner)
    : runner_(std::move(runner)),
      watched_(std::make_shared<WatchedRunner>(runner_)),
      thread_(watched_, [this](const DeviceTask&, const Status& status) { ended(status); }) {}

void PartDevice::run(uint64_t attempt, std::vector<PartRow> rows, Ended ended) {
  DeviceTask task;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({attempt, std::move(rows), std::move(ended), live_now()});
    for (auto& row : jobs_.back().rows) task.batch.push_back(&row);
    thread_.give(std::move(task));
  }
}

std::optional<PartDevice::Progress> PartDevice::running() const {
  const std::lock_guard lock(mutex_);
  const auto now = watched_->now();
  if (!now || jobs_.empty()) return std::nullopt;
  return Progress{jobs_.front().attempt, now->elapsed, now->waited};
}

void PartDevice::ended(const Status& status) {
  const TimeNs now = live_now();
  std::unique_lock lock(mutex_);
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  const TimeNs begun = std::max(job.given, idle_since_);
  idle_since_ = now;
  lock.unlock();
  job.ended(job.rows, status, std::max<TimeNs>(1, now - begun));
}

PartDevices::PartDevices(PartDevicesOptions options)
    : options_(std::move(options)), cluster_(options_.cluster), thread_([this] { work(); }) {}

PartDevices::~PartDevices() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PartDevices::load(uint64_t session, const worker::Load& load, OnLoaded on_loaded) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({session, load, std::move(on_loaded)});
  }
  changed_.notify_all();
}

void PartDevices::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return quit_ || !jobs_.empty(); });
      if (quit_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    std::vector<LoadedRole> loaded;
    auto& plan = plans_[{job.session, job.load.generation()}];
    for (const auto& role : job.load.roles()) {
      if (!role.computes()) continue;
      {
        const std::lock_guard lock(mutex_);
        if (quit_) return;
      }
      LoadedRole out;
      out.device = role.device();
      auto part = load_role(plan, role, job.load);
      if (part.ok())
        out.part = *part;
      else
        out.refusal = "model '" + role.model() + "': " + part.error().to_string();
      loaded.push_back(std::move(out));
    }
    job.loaded(std::move(loaded));
    forget_closed(job.session, job.load);
    // Only this thread adds parts, so a part without another owner stays without one.
    std::erase_if(devices_, [](const auto& d) { return d.second.use_count() <= 1; });
  }
}

void PartDevices::forget_closed(uint64_t session, const worker::Load& load) {
  std::erase_if(plans_, [&](const auto& plan) {
    const auto& [of, generation] = plan.first;
    return of < session || (of == session && is_closed(generation, load));
  });
  while (plans_.size() > kKeptPlans) plans_.erase(plans_.begin());
}

Result<std::string> PartDevices::name_of(Plan& plan, const worker::Role& role) const {
  const auto named = options_.names.find(role.device_class());
  if (named == options_.names.end()) {
    if (!role.device_name().empty()) return role.device_name();
    return invalid_input("class '" + role.device_class() + "' names no devices: give the worker --devices " +
                         role.device_class() + "=cpu0, or the fleet file \"devices\"");
  }
  auto& whole = plan.whole[role.device_class()];
  auto at = std::find(whole.begin(), whole.end(), role.whole_device());
  if (at == whole.end()) at = whole.insert(whole.end(), role.whole_device());
  const auto index = static_cast<size_t>(at - whole.begin());
  if (index >= named->second.size())
    return invalid_input("this worker has " + counted(named->second.size(), "device") + " of class '" +
                         role.device_class() + "'");
  return named->second[index];
}

Result<PartRole> PartDevices::load_role(Plan& plan, const worker::Role& role, const worker::Load& load) {
  const auto& models = load.models();
  const auto model =
      std::find_if(models.begin(), models.end(), [&role](const auto& m) { return m.name() == role.model(); });
  if (model == models.end()) return invalid_input("the server did not say which file it is");
  auto out = std::make_shared<PartContent>();
  HEDDLE_ASSIGN_OR_RETURN(out->file, file_of(*model, role, options_.models));
  out->block_to = static_cast<int>(role.block_to());
  if (!cluster_) {
    HEDDLE_ASSIGN_OR_RETURN(cluster_, discover_machine());
  }
  if (!plan.devices) plan.devices = std::make_unique<MachineDevices>(cluster_);
  HEDDLE_ASSIGN_OR_RETURN(const auto name, name_of(plan, role));
  HEDDLE_ASSIGN_OR_RETURN(const auto device,
                          plan.devices->take({name, role.device_class(), static_cast<int>(role.share()),
                                              static_cast<int>(role.part())}));
  HEDDLE_ASSIGN_OR_RETURN(out->model,
                          parts_.load(role.model(), out->file, static_cast<int>(model->max_batch())));
  HEDDLE_ASSIGN_OR_RETURN(
      auto part, parts_.part(out->model, out->file, static_cast<int>(role.block_from()), out->block_to,
                             device, std::max(1.0, role.slowdown() * options_.slowdown)));
  out->cargo = cargo_behind(*out->model, out->file, out->block_to);
  auto& known = devices_[part.get()];
  try {
    if (!known) known = std::make_shared<PartDevice>(std::move(part));
  } catch (const std::system_error& e) {
    return io_error(std::string("no more threads can be started: ") + e.what());
  }
  return PartRole{std::move(out), known};
}

}  // namespace heddle
