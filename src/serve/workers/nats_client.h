// A connection to a NATS server with JetStream, for the bus and for the servers' shared store.
#pragma once

#ifdef HEDDLE_HAVE_NATS
#include <nats/nats.h>

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/base/status.h"

namespace heddle {

// kIo: "what (the client's reason)".
Error nats_error(const std::string& what, natsStatus status);

template <class T, void (*Destroy)(T*)>
struct NatsDeleter {
  void operator()(T* what) const { Destroy(what); }
};
template <class T, void (*Destroy)(T*)>
using NatsPtr = std::unique_ptr<T, NatsDeleter<T, Destroy>>;

struct NatsClient {
  NatsPtr<natsConnection, natsConnection_Destroy> connection;
  NatsPtr<jsCtx, jsCtx_Destroy> js;
};
// It reconnects by itself. `patience_ms`: for answers of JetStream.
Result<NatsClient> connect_nats(const std::string& url, int64_t patience_ms);

using NatsBucket = NatsPtr<kvStore, kvStore_Destroy>;
// The bucket of that name, made by `config` if it is missing.
Result<NatsBucket> open_nats_bucket(const NatsClient& client, const std::string& url, kvConfig config);

}  // namespace heddle
#endif
