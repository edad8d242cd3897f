// A worker in the test's process whose links to the others a test can cut or delay.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "heddle/serve/bus.h"
#include "heddle/serve/worker.h"
#include "relay.h"

namespace heddle {

// Announces a worker by the relay that leads to it.
class RelayedAnnouncer final : public Announcer {
 public:
  RelayedAnnouncer(std::unique_ptr<Announcer> announcer, Relay& to_worker)
      : announcer_(std::move(announcer)), to_worker_(to_worker) {}
  Status announce(const std::string& key, const std::string& value) override {
    auto entry = worker_entry_from_text(key, value);
    EXPECT_TRUE(entry.ok());
    to_worker_.lead_to(std::stoi(entry->address.substr(entry->address.rfind(':') + 1)));
    entry->address = to_worker_.address();
    return announcer_->announce(key, worker_entry_text(*entry));
  }
  Status withdraw(const std::string& key) override { return announcer_->withdraw(key); }
  double lease_s() const override { return announcer_->lease_s(); }

 private:
  const std::unique_ptr<Announcer> announcer_;
  Relay& to_worker_;
};

// A worker on a host of its own: all that reaches it and its server goes through relays.
class RelayedHost {
 public:
  RelayedHost(const std::string& name, int server_port, const std::map<std::string, int64_t>& devices,
              WorkerOptions options = {}) {
    to_server_.lead_to(server_port);
    auto announcer = registry_announcer(to_server_.address());
    EXPECT_TRUE(announcer.ok());
    announcer_ = std::make_unique<RelayedAnnouncer>(std::move(*announcer), to_worker_);
    options.name = name;
    options.devices = devices;
    auto made = Worker::start(options, *announcer_);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    worker_ = std::move(*made);
  }
  // `in`: what it is sent; `out`: what it sends.
  void cut(bool in, bool out) {
    to_worker_.cut(in, out);
    to_server_.cut(out, in);
  }
  void heal(Relay::Old old) {
    to_worker_.heal(old);
    to_server_.heal(old);
  }
  Relay& to_worker() { return to_worker_; }
  const Worker& worker() const { return *worker_; }

 private:
  Relay to_worker_, to_server_;
  std::unique_ptr<RelayedAnnouncer> announcer_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace heddle
