// The bus on NATS: a bucket of JetStream's key-value store. The store forgets entries that are not renewed,
// but sends no event, so each reader watches the leases of the entries that it has seen.
#include "heddle/serve/bus.h"

#ifdef HEDDLE_HAVE_NATS
#include <nats/nats.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "lease_table.h"
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

Error nats_error(const std::string& what, natsStatus status) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = natsStatus_GetText(status);
  if (detail != nullptr && *detail != '\0' && text != detail) text += std::string(": ") + detail;
  return Error(Code::kIo, what + " (" + text + ")");
}

template <class T, void (*Destroy)(T*)>
struct NatsDeleter {
  void operator()(T* what) const { Destroy(what); }
};
template <class T, void (*Destroy)(T*)>
using NatsPtr = std::unique_ptr<T, NatsDeleter<T, Destroy>>;

class NatsBus final : public WorkerBus {
 public:
  explicit NatsBus(const BusOptions& options) : options_(options), table_(options) {}
  ~NatsBus() override {
    quit_ = true;
    if (watcher_) kvWatcher_Stop(watcher_.get());
    if (reader_.joinable()) reader_.join();
  }

  Status open(const std::string& url, const std::string& bucket) {
    natsOptions* made = nullptr;
    if (const auto s = natsOptions_Create(&made); s != NATS_OK) return nats_error("NATS's client", s);
    const NatsPtr<natsOptions, natsOptions_Destroy> options(made);
    const auto lease_ms = static_cast<int64_t>(options_.lease_s * 1e3);
    natsStatus s = natsOptions_SetURL(made, url.c_str());
    if (s != NATS_OK) return Error(Code::kInvalidInput, "the bus " + url + ": expected nats://HOST:PORT");
    natsOptions_SetTimeout(made, std::max<int64_t>(lease_ms, 1000));
    natsOptions_SetName(made, "heddle");
    natsOptions_SetMaxReconnect(made, -1);
    natsOptions_SetReconnectWait(made, std::max<int64_t>(lease_ms / 4, 50));
    natsConnection* connection = nullptr;
    s = natsConnection_Connect(&connection, made);
    if (s != NATS_OK) return nats_error("no NATS server answers at " + url, s);
    connection_.reset(connection);
    jsOptions js_options;
    jsOptions_Init(&js_options);
    js_options.Wait = std::max<int64_t>(lease_ms, 100);
    jsCtx* js = nullptr;
    s = natsConnection_JetStream(&js, connection, &js_options);
    if (s != NATS_OK) return nats_error(url + ": JetStream", s);
    js_.reset(js);
    kvStore* store = nullptr;
    s = js_KeyValue(&store, js, bucket.c_str());
    if (s != NATS_OK) {
      kvConfig config;
      kvConfig_Init(&config);
      config.Bucket = bucket.c_str();
      config.History = 1;
      config.TTL = static_cast<int64_t>(options_.lease_s * 1e9);
      config.MaxValueSize = static_cast<int32_t>(options_.max_value_bytes);
      config.MaxBytes = options_.max_bytes;
      config.StorageType = js_MemoryStorage;
      s = js_CreateKeyValue(&store, js, &config);
      // Another process may have made it in between.
      if (s != NATS_OK) s = js_KeyValue(&store, js, bucket.c_str());
    }
    if (s != NATS_OK)
      return nats_error(
          url + ": no bucket '" + bucket + "'; does the server run with JetStream (nats-server -js)?", s);
    store_.reset(store);
    kvWatcher* watcher = nullptr;
    s = kvStore_WatchAll(&watcher, store, nullptr);
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
        return Error(Code::kInfeasible, std::string("the bus is full: ") + detail);
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
  NatsPtr<natsConnection, natsConnection_Destroy> connection_;
  NatsPtr<jsCtx, jsCtx_Destroy> js_;
  NatsPtr<kvStore, kvStore_Destroy> store_;
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
