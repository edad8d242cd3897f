// The bus on NATS: a bucket of JetStream's key-value store. The store forgets entries that are not renewed,
// but sends no event, so each reader watches the leases of the entries that it has seen.
#include "heddle/serve/bus.h"

#ifdef HEDDLE_HAVE_NATS
#include <atomic>
#include <cstring>
#include <thread>

#include "lease_table.h"
#include "nats_client.h"
#endif

namespace heddle {

#ifndef HEDDLE_HAVE_NATS

bool has_nats() { return false; }

Result<std::unique_ptr<WorkerBus>> nats_bus(const std::string&, const std::string&, const BusOptions&) {
  return Error(
      Code::kUnsupported,
      "this program was built without NATS's client; install libnats-dev and build it again, or leave "
      "--bus out");
}

#else

namespace {

class NatsBus final : public WorkerBus {
 public:
  explicit NatsBus(const BusOptions& options) : options_(options), table_(options) {}
  ~NatsBus() override {
    quit_ = true;
    if (watcher_) kvWatcher_Stop(watcher_.get());
    if (reader_.joinable()) reader_.join();
  }

  Status open(const std::string& url, const std::string& bucket) {
    const auto lease_ms = static_cast<int64_t>(options_.lease_s * 1e3);
    HEDDLE_ASSIGN_OR_RETURN(client_, connect_nats(url, lease_ms));
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = bucket.c_str();
    config.History = 1;
    config.TTL = static_cast<int64_t>(options_.lease_s * 1e9);
    config.MaxValueSize = static_cast<int32_t>(options_.max_value_bytes);
    config.MaxBytes = options_.max_bytes;
    config.StorageType = js_MemoryStorage;
    HEDDLE_ASSIGN_OR_RETURN(store_, open_nats_bucket(client_, url, config));
    kvWatcher* watcher = nullptr;
    const auto s = kvStore_WatchAll(&watcher, store_.get(), nullptr);
    if (s != NATS_OK) return nats_error(url + ": cannot watch bucket '" + bucket + "'", s);
    watcher_.reset(watcher);
    reader_ = std::thread([this] { read(); });
    return {};
  }

  Status announce(const std::string& key, const std::string& value) override {
    HEDDLE_RETURN_IF_ERROR(check_bus_key(key));
    const auto s =
        kvStore_Put(nullptr, store_.get(), key.c_str(), value.data(), static_cast<int>(value.size()));
    if (s != NATS_OK) {
      const char* detail = nats_GetLastError(nullptr);
      if (detail != nullptr && std::strstr(detail, "maximum bytes") != nullptr)
        return infeasible(std::string("the bus is full: ") + detail);
      return nats_error("the bus does not take '" + key + "'", s);
    }
    return {};
  }
  Status withdraw(const std::string& key) override {
    HEDDLE_RETURN_IF_ERROR(check_bus_key(key));
    const auto s = kvStore_Delete(store_.get(), key.c_str());
    if (s != NATS_OK && s != NATS_NOT_FOUND) return nats_error("the bus does not take '" + key + "' back", s);
    return {};
  }
  double lease_s() const override { return options_.lease_s; }
  void watch(Watcher watcher) override { table_.watch(std::move(watcher)); }
  std::vector<BusEntry> entries() const override { return table_.entries(); }

 private:
  void read() {
    while (!quit_) {
      kvEntry* next = nullptr;
      const auto s = kvWatcher_Next(&next, watcher_.get(), 200);
      if (s == NATS_TIMEOUT) continue;
      if (s != NATS_OK) {
        // The client reconnects by itself; until then there is nothing to read.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      const NatsPtr<kvEntry, kvEntry_Destroy> entry(next);
      if (!entry) continue;  // all existing entries have been reported
      const std::string key = kvEntry_Key(next);
      if (kvEntry_Operation(next) != kvOp_Put) {
        (void)table_.withdraw(key).ok();
        continue;
      }
      const auto* value = static_cast<const char*>(kvEntry_Value(next));
      // What does not fit is as if it were not there.
      (void)table_.announce(key, {value, static_cast<size_t>(std::max(0, kvEntry_ValueLen(next)))}).ok();
    }
  }

  const BusOptions options_;
  LeaseTable table_;
  NatsClient client_;
  NatsBucket store_;
  NatsPtr<kvWatcher, kvWatcher_Destroy> watcher_;
  std::atomic<bool> quit_{false};
  std::thread reader_;
};

}  // namespace

bool has_nats() { return true; }

Result<std::unique_ptr<WorkerBus>> nats_bus(const std::string& url, const std::string& bucket,
                                            const BusOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_lease(options.lease_s));
  HEDDLE_RETURN_IF_ERROR(check_bus_key(bucket));
  auto bus = std::make_unique<NatsBus>(options);
  HEDDLE_RETURN_IF_ERROR(bus->open(url, bucket));
  return std::unique_ptr<WorkerBus>(std::move(bus));
}

#endif

}  // namespace heddle
