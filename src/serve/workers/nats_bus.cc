// The bus on NATS: a bucket of JetStream's key-value store. The store forgets entries that are not renewed,
// but sends no event, so each reader watches the leases of the entries that it has seen. The bucket is in the server's
// memory, for its entries are short-lived. If the server was started again, whoever connects first makes it anew.
#include "heddle/serve/bus.h"

#ifdef HEDDLE_HAVE_NATS
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "heddle/base/log.h"
#include "lease_table.h"
#include "nats_client.h"
#endif

namespace heddle {

#ifndef HEDDLE_HAVE_NATS

bool has_nats() { return false; }

Result<std::unique_ptr<WorkerBus>> nats_bus(const std::string&, const std::string&, const BusOptions&) {
  return unsupported(
      "this program was built without NATS's client; configure it with -DHEDDLE_NATS=ON, or leave "
      "--bus out");
}

#else

namespace {

class NatsBus final : public WorkerBus {
 public:
  explicit NatsBus(const BusOptions& options) : options_(options), table_(options) {}
  ~NatsBus() override {
    quit_ = true;
    if (reader_.joinable()) reader_.join();
  }

  Status open(const std::string& url, const std::string& bucket) {
    url_ = url;
    bucket_ = bucket;
    HEDDLE_ASSIGN_OR_RETURN(client_, connect_nats(url, static_cast<int64_t>(options_.lease_s * 1e3)));
    HEDDLE_RETURN_IF_ERROR(attach());
    reader_ = std::thread([this] { read(); });
    return {};
  }

  Status announce(const std::string& key, const std::string& value) override {
    HEDDLE_RETURN_IF_ERROR(check_bus_key(key));
    const auto s =
        kvStore_Put(nullptr, store().get(), key.c_str(), value.data(), static_cast<int>(value.size()));
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
    const auto s = kvStore_Delete(store().get(), key.c_str());
    if (s != NATS_OK && s != NATS_NOT_FOUND) return nats_error("the bus does not take '" + key + "' back", s);
    return {};
  }
  double lease_s() const override { return options_.lease_s; }
  void watch(Watcher watcher) override { table_.watch(std::move(watcher)); }
  std::vector<BusEntry> entries() const override { return table_.entries(); }

 private:
  // The bucket, made if it is missing, and a watch on it that begins with all entries.
  Status attach() {
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = bucket_.c_str();
    config.History = 1;
    config.TTL = static_cast<int64_t>(options_.lease_s * 1e9);
    config.MaxValueSize = static_cast<int32_t>(options_.max_value_bytes);
    config.MaxBytes = options_.max_bytes;
    config.StorageType = js_MemoryStorage;
    const uint64_t connection = reconnects();
    HEDDLE_ASSIGN_OR_RETURN(auto store, open_nats_bucket(client_, url_, config));
    kvWatcher* watcher = nullptr;
    const auto s = kvStore_WatchAll(&watcher, store.get(), nullptr);
    if (s != NATS_OK) return nats_error(url_ + ": cannot watch bucket '" + bucket_ + "'", s);
    watcher_.reset(watcher);
    attached_ = connection;
    const std::lock_guard lock(mutex_);
    store_ = std::move(store);
    return {};
  }

  // The server may be another one, without the bucket and without this watch. Then nothing comes.
  void attach_again() {
    if (reconnects() == attached_) return;
    if (const auto again = attach(); again.ok()) {
      log_line(LogLevel::kInfo, url_ + ": connected to the bus again");
    } else {
      log_debug([&] { return again.error().to_string(); });
    }
  }

  std::shared_ptr<kvStore> store() const {
    const std::lock_guard lock(mutex_);
    return store_;
  }

  // How often the client has connected again.
  uint64_t reconnects() const {
    natsStatistics* made = nullptr;
    if (natsStatistics_Create(&made) != NATS_OK) return attached_;
    const NatsPtr<natsStatistics, natsStatistics_Destroy> statistics(made);
    uint64_t in = 0, in_bytes = 0, out = 0, out_bytes = 0, count = attached_;
    if (natsConnection_GetStats(client_.connection.get(), made) == NATS_OK)
      natsStatistics_GetCounts(made, &in, &in_bytes, &out, &out_bytes, &count);
    return count;
  }

  void read() {
    while (!quit_) {
      kvEntry* next = nullptr;
      const auto s = kvWatcher_Next(&next, watcher_.get(), 200);
      if (s != NATS_OK) {
        // The client reconnects by itself; until then there is nothing to read.
        if (s != NATS_TIMEOUT) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        attach_again();
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
  std::string url_, bucket_;
  NatsClient client_;
  mutable std::mutex mutex_;
  std::shared_ptr<kvStore> store_;  // guarded by mutex_
  // Of the reader, once it runs. The watch goes before its store.
  NatsPtr<kvWatcher, kvWatcher_Destroy> watcher_;
  uint64_t attached_ = 0;  // reconnects() before the watch
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
