#include "shared_store.h"

#ifdef HEDDLE_HAVE_NATS
#include "heddle/base/sync.h"
#include "workers/nats_client.h"
#endif

namespace heddle {

#ifndef HEDDLE_HAVE_NATS

Result<std::shared_ptr<SharedStore>> nats_store(const std::string&, const std::string&) {
  return unsupported(
      "this program was built without NATS's client; configure it with -DHEDDLE_NATS=ON, or keep "
      "the servers' state in a folder");
}

#else

namespace {

constexpr int64_t kPatience_ms = 1000;
constexpr int64_t kMostStateBytes = int64_t{256} << 20;

class NatsStore final : public SharedStore {
 public:
  NatsStore(std::string url, std::string bucket, NatsClient client)
      : url_(std::move(url)), name_(std::move(bucket)), client_(std::move(client)) {}

  // Makes the bucket where it is missing.
  Status open() {
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = name_.c_str();
    config.History = 1;
    config.MaxBytes = kMostStateBytes;
    config.StorageType = js_FileStorage;
    HEDDLE_ASSIGN_OR_RETURN(auto opened, open_nats_bucket(client_, url_, config));
    const std::lock_guard lock(mutex_);
    bucket_ = std::move(opened);
    return {};
  }

  Result<Entry> get(const std::string& key) override {
    kvEntry* found = nullptr;
    const auto s = kvStore_Get(&found, bucket().get(), key.c_str());
    if (s == NATS_NOT_FOUND) return Entry{};
    if (s != NATS_OK) {
      const Error failed = nats_error("the servers' store does not give '" + key + "'", s);
      // A server that has lost its files has no bucket. It is there for the next try.
      if (natsConnection_Status(client_.connection.get()) == NATS_CONN_STATUS_CONNECTED) (void)open().ok();
      return failed;
    }
    const NatsPtr<kvEntry, kvEntry_Destroy> entry(found);
    const auto* value = static_cast<const char*>(kvEntry_Value(found));
    return Entry{std::string(value, static_cast<size_t>(kvEntry_ValueLen(found))), kvEntry_Revision(found)};
  }

  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    uint64_t made = 0;
    const auto size = static_cast<int>(value.size());
    const auto s = revision == 0
                       ? kvStore_Create(&made, bucket().get(), key.c_str(), value.data(), size)
                       : kvStore_Update(&made, bucket().get(), key.c_str(), value.data(), size, revision);
    if (s == NATS_OK) return std::optional(made);
    const Error failed = nats_error("the servers' store does not take '" + key + "'", s);
    HEDDLE_ASSIGN_OR_RETURN(const Entry now, get(key));
    if (now.revision == revision) return failed;
    if (now.value == value) return std::optional(now.revision);  // it was taken, and the answer was lost
    return std::optional<uint64_t>();
  }

 private:
  std::shared_ptr<kvStore> bucket() const {
    const std::lock_guard lock(mutex_);
    return bucket_;
  }

  const std::string url_, name_;
  const NatsClient client_;
  mutable Mutex mutex_;
  std::shared_ptr<kvStore> bucket_;  // guarded by mutex_
};

}  // namespace

Result<std::shared_ptr<SharedStore>> nats_store(const std::string& url, const std::string& bucket) {
  HEDDLE_ASSIGN_OR_RETURN(auto client, connect_nats(url, kPatience_ms));
  const auto store = std::make_shared<NatsStore>(url, bucket, std::move(client));
  HEDDLE_RETURN_IF_ERROR(store->open());
  return std::shared_ptr<SharedStore>(store);
}

#endif

}  // namespace heddle
