#include "remote_check.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "heddle/serve/live_plane.h"

namespace heddle {
namespace {

constexpr double kPatience_s = 60, kPatienceFactor = 3;

// One step after the other, each waited for.
class Prober final : public RemoteListener {
 public:
  Prober(RemoteDevices& devices, const CancelToken& cancel)
      : devices_(devices), cancel_(cancel), there_(devices.listen(this)) {}
  ~Prober() override { devices_.listen(nullptr); }

  bool there(uint32_t device) const {
    const std::lock_guard lock(mutex_);
    return device < there_.size() && there_[device];
  }

  Result<RemoteAnswer> step(RemoteTask task) {
    task.attempt = devices_.next_attempt();
    if (!task.transfer && task.batch == 0) task.batch = task.attempt;
    batch_ = task.batch;
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::duration<double>(kPatience_s + kPatienceFactor * 1e-9 *
                                                                       static_cast<double>(task.expected_ns));
    const uint64_t attempt = task.attempt;
    const uint32_t device = task.device;
    devices_.begin(std::move(task));
    std::unique_lock lock(mutex_);
    while (!answer_ || answer_->attempt != attempt) {
      if (cancel_.cancelled()) return cancelled_error("stopped while checking the workers");
      if (!there_[device]) return io_error("a worker was lost while its partitions were checked");
      if (std::chrono::steady_clock::now() > until)
        return io_error("a worker did not answer while its partitions were checked");
      changed_.wait_for(lock, std::chrono::milliseconds(50));
    }
    auto answer = *std::move(answer_);
    answer_.reset();
    if (!answer.status.ok()) return answer.status.error();
    return answer;
  }
  uint64_t batch() const { return batch_; }

  void answered(const RemoteAnswer& answer) override {
    {
      const std::lock_guard lock(mutex_);
      answer_ = answer;
    }
    changed_.notify_all();
  }
  void remote_lost(uint32_t device) override { set(device, 0); }
  void remote_back(uint32_t device) override { set(device, 1); }

 private:
  void set(uint32_t device, char there) {
    {
      const std::lock_guard lock(mutex_);
      if (device < there_.size()) there_[device] = there;
    }
    changed_.notify_all();
  }

  RemoteDevices& devices_;
  const CancelToken cancel_;
  uint64_t batch_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<char> there_;
  std::optional<RemoteAnswer> answer_;
};

Result<TensorGap> run_chain(Prober& prober, RemoteDevices& devices, const DeployedPipeline& pipeline,
                            const std::vector<uint32_t>& chain, const UnsplitModel& whole) {
  uint64_t batch = 0;
  RemoteAnswer last;
  for (size_t k = 0; k < chain.size(); ++k) {
    RemoteTask task;
    task.batch = batch;
    task.device = chain[k];
    task.rows = 1;
    if (k > 0) {
      RemoteTask transfer = task;
      transfer.transfer = true;
      transfer.source = chain[k - 1];
      transfer.expected_ns = pipeline.partitions[k].transfer_ns.front();
      HEDDLE_RETURN_IF_ERROR(prober.step(std::move(transfer)));
    } else {
      task.payloads.resize(1);
      for (const auto& t : whole.inputs)
        task.payloads[0].push_back({nullptr, t.data.get(), static_cast<size_t>(t.bytes)});
    }
    task.expected_ns = task.device_ns = pipeline.partitions[k].run_ns.front();
    HEDDLE_ASSIGN_OR_RETURN(last, prober.step(std::move(task)));
    batch = prober.batch();
    if (k > 0) devices.release(batch, chain[k - 1]);
  }
  int64_t all = 0;
  for (const auto& t : whole.outputs) all += t.bytes;
  if (last.outputs.size() != 1 || last.outputs[0].bytes != static_cast<size_t>(all))
    return Error(Code::kVerificationFailed, "the last part's outputs have another size than the model's");
  TensorGap worst;
  int64_t at = 0;
  for (const auto& expected : whole.outputs) {
    HEDDLE_ASSIGN_OR_RETURN(const auto actual, make_tensor(expected.dtype, expected.shape));
    std::memcpy(actual.data.get(), last.outputs[0].data + at, static_cast<size_t>(expected.bytes));
    at += expected.bytes;
    keep_worst(worst, relative_difference(actual.view(), expected.view()));
  }
  return worst;
}

}  // namespace

Result<SplitCheck> check_remote(RemoteDevices& devices, const Deployment& deployment, uint32_t model,
                                const UnsplitModel& whole, const CancelToken& cancel) {
  Prober prober(devices, cancel);
  SplitCheck check;
  for (const auto& p : deployment.pipelines) {
    if (p.model != model) continue;
    uint32_t chains = 1;
    for (const auto& pool : p.partitions) chains = std::max(chains, pool.num_devices);
    check.split = check.split || p.partitions.size() > 1;
    for (uint32_t i = 0; i < chains; ++i) {
      std::vector<uint32_t> chain;
      for (const auto& pool : p.partitions) chain.push_back(pool.first_device + i % pool.num_devices);
      const bool all_there =
          std::all_of(chain.begin(), chain.end(), [&prober](uint32_t v) { return prober.there(v); });
      if (!all_there) {
        check.unverified = "devices that have no worker yet";
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(const TensorGap gap, run_chain(prober, devices, p, chain, whole));
      keep_worst(check.worst, gap);
    }
  }
  return check;
}

}  // namespace heddle
