#include "feature_maps.h"

#include <algorithm>
#include <cstring>

#include "heddle/fleet/fleet.h"
#include "heddle/serve/worker.h"
#include "protocol/grpc_ends.h"
#include "protocol_version.h"
#include "worker_proof.h"

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

FeatureMap computed_map(MapSections sections, uint32_t rows) {
  FeatureMap map;
  for (const auto& s : sections) map.bytes += s.bytes.size();
  map.sections = std::make_shared<const MapSections>(std::move(sections));
  map.rows = rows;
  return map;
}

bool FeatureIntake::announce(const worker::FeatureChunk& chunk) {
  announced_ = true;
  batch_ = chunk.batch();
  device_ = chunk.device();
  map_.bytes = chunk.bytes();
  map_.digests.assign(chunk.digests().begin(), chunk.digests().end());
  computed_ = chunk.sections_size() > 0;
  uint64_t all = 0;
  for (const auto& s : chunk.sections()) {
    if (s.row() >= static_cast<uint32_t>(kMaxFleetBatch) || s.bytes() > kMostMapBytes ||
        !worker::Section::Kind_IsValid(s.kind()))
      return false;
    all += s.bytes();
    if (all > kMostMapBytes) return false;
    sections_.push_back({s.row(), static_cast<MapSection::Kind>(s.kind()), s.index(), {}});
    section_bytes_.push_back(s.bytes());
    map_.rows = std::max(map_.rows, s.row() + 1);
  }
  if (computed_) return all == map_.bytes;
  return map_.bytes <= kMostFeatureBytes && map_.digests.size() <= static_cast<size_t>(kMaxFleetBatch);
}

bool FeatureIntake::append(std::string_view data) {
  while (!data.empty()) {
    while (section_ < sections_.size() && sections_[section_].bytes.size() == section_bytes_[section_])
      ++section_;
    if (section_ == sections_.size()) return false;
    auto& to = sections_[section_].bytes;
    const size_t part = std::min<size_t>(data.size(), section_bytes_[section_] - to.size());
    const auto* from = reinterpret_cast<const std::byte*>(data.data());
    to.insert(to.end(), from, from + part);
    data.remove_prefix(part);
  }
  return true;
}

bool FeatureIntake::take(const worker::FeatureChunk& chunk) {
  if (!announced_ && !announce(chunk)) return false;
  const auto& data = chunk.data();
  if (data.size() > map_.bytes - received_) return false;
  if (computed_ ? !append(data) : !are_feature_bytes(batch_, received_, data)) return false;
  received_ += data.size();
  return true;
}

FeatureMap FeatureIntake::map() {
  if (computed_) map_.sections = std::make_shared<const MapSections>(std::move(sections_));
  return std::move(map_);
}

void FeatureMaps::erase(Maps::iterator it) {
  bytes_ -= held_bytes(it->second.map);
  maps_.erase(it);
}

void FeatureMaps::put(uint64_t batch, uint32_t device, FeatureMap map, bool made) {
  const std::lock_guard lock(mutex_);
  const TimeNs now = steady_ns();
  auto& kept = maps_[{batch, device}];
  bytes_ += held_bytes(map) - held_bytes(kept.map);
  kept = {std::move(map), now, made};
  while (!maps_.empty() &&
         (maps_.size() > limit_ || bytes_ > kMostKeptMapBytes || now - maps_.begin()->second.since > keep_))
    erase(maps_.begin());
}

void FeatureMaps::release(uint64_t batch, uint32_t device) {
  const std::lock_guard lock(mutex_);
  if (const auto it = maps_.find({batch, device}); it != maps_.end()) erase(it);
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
  auto map = it->second.map;
  erase(it);
  return map;
}

size_t FeatureMaps::size() const {
  const std::lock_guard lock(mutex_);
  return maps_.size();
}

bool FeatureMaps::has_made() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(maps_, [](const auto& kept) { return kept.second.made; });
}

void FeatureMaps::clear() {
  const std::lock_guard lock(mutex_);
  maps_.clear();
  bytes_ = 0;
}

namespace {

// The bytes of a map, piece by piece.
class MapSource {
 public:
  explicit MapSource(const FeatureSender::Parcel& parcel) : parcel_(parcel) {}

  void describe(worker::FeatureChunk& chunk) const {
    if (!parcel_.map.sections) return;
    for (const auto& s : *parcel_.map.sections) {
      auto& to = *chunk.add_sections();
      to.set_row(s.row);
      to.set_kind(static_cast<worker::Section::Kind>(s.kind));
      to.set_index(s.index);
      to.set_bytes(s.bytes.size());
    }
  }
  bool more() const { return sent_ < parcel_.map.bytes; }
  void fill(std::string& out) {
    const auto size = std::min<uint64_t>(kFeatureChunkBytes, parcel_.map.bytes - sent_);
    out.resize(size);
    if (!parcel_.map.sections) {
      fill_feature_bytes(parcel_.batch, sent_, out);
    } else {
      for (size_t done = 0; done < size;) {
        const auto& bytes = (*parcel_.map.sections)[section_].bytes;
        const size_t part = std::min<size_t>(size - done, bytes.size() - at_);
        std::memcpy(out.data() + done, bytes.data() + at_, part);
        done += part;
        at_ += part;
        if (at_ < bytes.size()) continue;
        ++section_;
        at_ = 0;
      }
    }
    sent_ += size;
  }

 private:
  const FeatureSender::Parcel& parcel_;
  uint64_t sent_ = 0;
  size_t section_ = 0, at_ = 0;
};

}  // namespace

// One other worker, its thread and what to send it.
struct FeatureSender::Peer {
  Peer(const std::string& to, WorkerNetwork& network, const WorkerSecurity& with)
      : address(to), security(with), link(network.feature_link(to, with)), thread([this] { run(); }) {}

  ~Peer() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
      if (under_way != nullptr) under_way->cancel();
    }
    changed.notify_all();
    thread.join();
  }

  void add(Parcel parcel) {
    {
      const std::lock_guard lock(mutex);
      queue.push_back(std::move(parcel));
    }
    changed.notify_one();
  }

  bool is_idle() {
    const std::lock_guard lock(mutex);
    return queue.empty() && under_way == nullptr;
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
      const auto call = link->call();
      under_way = call.get();
      lock.unlock();
      const TimeNs begun = steady_ns();
      const auto status = deliver(*call, parcel);
      const TimeNs took = steady_ns() - begun;
      lock.lock();
      under_way = nullptr;
      if (status.ok()) {
        sent.set_maps(sent.maps() + 1);
        sent.set_bytes(sent.bytes() + parcel.map.bytes);
        sent.set_ns(sent.ns() + took);
      } else {
        sent.set_failed(sent.failed() + 1);
      }
      if (quit) return;
      lock.unlock();
      parcel.sent(status);
      lock.lock();
    }
  }

  Status deliver(FeatureCall& call, const Parcel& parcel) {
    const auto left = parcel.until - steady_ns();
    if (left <= 0)
      return io_error("a feature map for the worker at " + address + " waited too long for others");
    call.start(left);
    worker::FeatureReply reply;
    worker::FeatureChunk chunk;
    CallerProof proof({security.token, kFeatureCall, address});
    bool may_go = true;
    chunk.set_version(kWorkerProtocol);
    if (proof.needed()) {
      *chunk.mutable_hello() = proof.hello();
      may_go = call.write(chunk) && call.read(reply);
      if (may_go && !proof.accepts(reply.challenge())) {
        call.cancel();
        (void)call.finish();
        return io_error("the worker at " + address + " does not prove that it knows the fleet's token");
      }
      chunk.Clear();
      if (may_go) chunk.set_proof(proof.proof());
    }
    chunk.set_batch(parcel.batch);
    chunk.set_generation(parcel.generation);
    chunk.set_device(parcel.device);
    chunk.set_bytes(parcel.map.bytes);
    for (const uint64_t d : parcel.map.digests) chunk.add_digests(d);
    MapSource source(parcel);
    source.describe(chunk);
    for (bool first = true; may_go && (first || source.more()); first = false) {
      source.fill(*chunk.mutable_data());
      if (!call.write(chunk)) break;
      if (first) chunk.Clear();
    }
    const auto status = call.finish();
    if (may_be_cut(status)) link->reconnect();
    if (!status.ok())
      return io_error("the worker at " + address + " did not take a feature map (" + status.error_message() +
                      ")");
    return {};
  }

  const std::string address;
  const WorkerSecurity& security;           // the sender's
  const std::unique_ptr<FeatureLink> link;  // of the thread
  Mutex mutex;                              // guards what follows
  Condition changed;
  std::deque<Parcel> queue;
  FeatureCall* under_way = nullptr;
  worker::Link sent;
  bool quit = false;
  Thread thread;
};

FeatureSender::FeatureSender(WorkerNetwork& network, const WorkerSecurity& security, size_t most_receivers)
    : network_(network), security_(security), most_receivers_(most_receivers) {}

FeatureSender::~FeatureSender() { forget_all(); }

void FeatureSender::send(const std::string& address, Parcel parcel) {
  parcel.until = steady_ns() + ns_from_us(parcel.patience_s * 1e6);
  std::unique_ptr<Peer> dropped;  // after the lock's end, for its thread is waited for
  std::unique_lock lock(mutex_);
  auto known = peers_.find(address);
  if (known == peers_.end() && peers_.size() >= most_receivers_) {
    const auto idle = std::ranges::find_if(peers_, [](const auto& to) { return to.second->is_idle(); });
    if (idle == peers_.end()) {
      lock.unlock();
      return parcel.sent(io_error("the worker sends feature maps to " + std::to_string(most_receivers_) +
                                  " others, the most that it may"));
    }
    dropped = std::move(idle->second);
    peers_.erase(idle);
  }
  if (known == peers_.end())
    known = peers_.emplace(address, std::make_unique<Peer>(address, network_, security_)).first;
  known->second->add(std::move(parcel));
}

std::vector<worker::Link> FeatureSender::links() const {
  std::vector<worker::Link> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [address, peer] : peers_) {
    const std::lock_guard guard(peer->mutex);
    out.push_back(peer->sent);
    out.back().set_address(address);
  }
  return out;
}

void FeatureSender::forget_all() {
  std::map<std::string, std::unique_ptr<Peer>> peers;
  {
    const std::lock_guard lock(mutex_);
    peers.swap(peers_);
  }
}

}  // namespace heddle
