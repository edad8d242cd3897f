#include "nats_client.h"

#ifdef HEDDLE_HAVE_NATS
#include <algorithm>

namespace heddle {

Error nats_error(const std::string& what, natsStatus status) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = natsStatus_GetText(status);
  if (detail != nullptr && *detail != '\0' && text != detail) text += std::string(": ") + detail;
  return io_error(what + " (" + text + ")");
}

Result<NatsClient> connect_nats(const std::string& url, int64_t patience_ms) {
  natsOptions* made = nullptr;
  if (const auto s = natsOptions_Create(&made); s != NATS_OK) return nats_error("NATS's client", s);
  const NatsPtr<natsOptions, natsOptions_Destroy> options(made);
  natsStatus s = natsOptions_SetURL(made, url.c_str());
  if (s != NATS_OK) return invalid_input("the bus " + url + ": expected nats://HOST:PORT");
  natsOptions_SetTimeout(made, std::max<int64_t>(patience_ms, 1000));
  natsOptions_SetName(made, "heddle");
  natsOptions_SetMaxReconnect(made, -1);
  natsOptions_SetReconnectWait(made, std::max<int64_t>(patience_ms / 4, 50));
  NatsClient client;
  natsConnection* connection = nullptr;
  s = natsConnection_Connect(&connection, made);
  if (s != NATS_OK) return nats_error("no NATS server answers at " + url, s);
  client.connection.reset(connection);
  jsOptions js_options;
  jsOptions_Init(&js_options);
  js_options.Wait = std::max<int64_t>(patience_ms, 100);
  jsCtx* js = nullptr;
  s = natsConnection_JetStream(&js, connection, &js_options);
  if (s != NATS_OK) return nats_error(url + ": JetStream", s);
  client.js.reset(js);
  return client;
}

Result<NatsBucket> open_nats_bucket(const NatsClient& client, const std::string& url, kvConfig config) {
  kvStore* store = nullptr;
  natsStatus s = js_KeyValue(&store, client.js.get(), config.Bucket);
  if (s != NATS_OK) {
    s = js_CreateKeyValue(&store, client.js.get(), &config);
    // Another process may have made it in between.
    if (s != NATS_OK) s = js_KeyValue(&store, client.js.get(), config.Bucket);
  }
  if (s == NATS_NO_RESPONDERS)
    return unsupported(url + ": this NATS server runs without JetStream; start it by nats-server -js");
  if (s != NATS_OK)
    return nats_error(
        url + ": no bucket '" + config.Bucket + "'; does the server run with JetStream (nats-server -js)?",
        s);
  return NatsBucket(store);
}

}  // namespace heddle
#endif
