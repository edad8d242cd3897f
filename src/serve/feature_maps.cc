#include "feature_maps.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "grpc_address.h"
#include "worker.grpc.pb.h"

namespace heddle {
namespace {

uint64_t feature_word(uint64_t batch, uint64_t index) {
  return (batch + 1) * 0x9e3779b97f4a7c15 ^ index * 0xbf58476d1ce4e5b9;
}

}  // namespace

void fill_feature_bytes(uint64_t batch, uint64_t offset, std::string& out) {
  uint64_t index = offset / 8;
  for (size_t i = 0; i < out.size(); i += 8, ++index) {
    const uint64_t word = feature_word(batch, index);
    std::memcpy(out.data() + i, &word, std::min<size_t>(8, out.size() - i));
  }
}

bool are_feature_bytes(uint64_t batch, uint64_t offset, const std::string& bytes) {
  if (offset % 8 != 0) return false;
  uint64_t index = offset / 8;
  for (size_t i = 0; i < bytes.size(); i += 8, ++index) {
    const uint64_t word = feature_word(batch, index);
    if (std::memcmp(bytes.data() + i, &word, std::min<size_t>(8, bytes.size() - i)) != 0) return false;
  }
  return true;
}

void FeatureMaps::put(uint64_t batch, uint32_t device, FeatureMap map) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  maps_[{batch, device}] = {std::move(map), now};
  while (!maps_.empty() && (maps_.size() > limit_ || now - maps_.begin()->second.since > keep_))
    maps_.erase(maps_.begin());
}

std::optional<FeatureMap> FeatureMaps::get(uint64_t batch, uint32_t device) const {
  const std::lock_guard lock(mutex_);
  const auto it = maps_.find({batch, device});
  if (it == maps_.end()) return std::nullopt;
  return it->second.map;
}

std::optional<FeatureMap> FeatureMaps::take(uint64_t batch, uint32_t device) {
  const std::lock_guard lock(mutex_);
  const auto it = maps_.find({batch, device});
  if (it == maps_.end()) return std::nullopt;
  auto map = std::move(it->second.map);
  maps_.erase(it);
  return map;
}

void FeatureMaps::clear() {
  const std::lock_guard lock(mutex_);
  maps_.clear();
}

// One other worker, its thread and what it is to be sent.
struct FeatureSender::Peer {
  explicit Peer(const std::string& to)
      : address(to),
        stub(worker::Worker::NewStub(
            grpc::CreateCustomChannel(to, grpc::InsecureChannelCredentials(), quick_reconnects()))),
        thread([this] { run(); }) {}

  ~Peer() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
      if (under_way != nullptr) under_way->TryCancel();
    }
    changed.notify_all();
    thread.join();
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!quit) {
      if (queue.empty()) {
        changed.wait(lock);
        continue;
      }
      const Parcel parcel = std::move(queue.front());
      queue.pop_front();
      grpc::ClientContext context;
      under_way = &context;
      lock.unlock();
      const auto status = deliver(context, parcel);
      lock.lock();
      under_way = nullptr;
      if (quit) return;
      lock.unlock();
      parcel.told(status);
      lock.lock();
    }
  }

  Status deliver(grpc::ClientContext& context, const Parcel& parcel) const {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(static_cast<int64_t>(parcel.patience_s * 1e3)));
    worker::FeatureReply reply;
    const auto writer = stub->Feature(&context, &reply);
    worker::FeatureChunk chunk;
    chunk.set_batch(parcel.batch);
    chunk.set_generation(parcel.generation);
    chunk.set_device(parcel.device);
    chunk.set_bytes(parcel.map.bytes);
    for (const uint64_t d : parcel.map.digests) chunk.add_digests(d);
    uint64_t sent = 0;
    for (bool first = true; first || sent < parcel.map.bytes; first = false) {
      const auto size = std::min<uint64_t>(kFeatureChunkBytes, parcel.map.bytes - sent);
      chunk.mutable_data()->resize(size);
      fill_feature_bytes(parcel.batch, sent, *chunk.mutable_data());
      if (!writer->Write(chunk)) break;
      sent += size;
      if (first) chunk.Clear();
    }
    writer->WritesDone();
    const auto status = writer->Finish();
    if (!status.ok())
      return Error(Code::kIo, "the worker at " + address + " did not take a feature map (" +
                                  status.error_message() + ")");
    return {};
  }

  const std::string address;
  const std::unique_ptr<worker::Worker::Stub> stub;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::deque<Parcel> queue;
  grpc::ClientContext* under_way = nullptr;
  bool quit = false;
  std::thread thread;
};

FeatureSender::~FeatureSender() { forget_all(); }

void FeatureSender::send(const std::string& address, Parcel parcel) {
  std::shared_ptr<Peer> peer;
  {
    const std::lock_guard lock(mutex_);
    auto& known = peers_[address];
    if (!known) known = std::make_shared<Peer>(address);
    peer = known;
  }
  {
    const std::lock_guard lock(peer->mutex);
    peer->queue.push_back(std::move(parcel));
  }
  peer->changed.notify_one();
}

void FeatureSender::forget_all() {
  std::map<std::string, std::shared_ptr<Peer>> peers;
  {
    const std::lock_guard lock(mutex_);
    peers.swap(peers_);
  }
}

}  // namespace heddle
