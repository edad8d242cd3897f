// Where a load finds its servers, also if names are not known, or lead elsewhere later.
#include "load/load_addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "load/load_run.h"
#include "load_support.h"

namespace heddle {
namespace {

using Addresses = Result<std::vector<SocketAddress>>;

SocketAddress loopback(int port) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(static_cast<uint16_t>(port));
  SocketAddress address;
  std::memcpy(&address.bytes, &in, sizeof in);
  address.size = sizeof in;
  return address;
}

int port_of(const SocketAddress& address) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.bytes).sin_port);
}

constexpr TimeNs kTick = 1'000'000;

TEST(LoadAddresses, UnknownNamesLeadToTheOtherServers) {
  // A connection stays open throughout; the second request takes the load to the standby.
  int n = 0;
  std::optional<HttpReply> kept;
  std::mutex mutex;
  const Stub first([&](const HttpHead&, const HttpBody& body, const HttpReply& reply) {
    const std::lock_guard lock(mutex);
    const int i = n++;
    if (i == 0)
      kept = reply;
    else
      reply.send(i == 1 ? http_error(503, "this server is a standby") : answer_to(body));
  });
  LoadOptions options;
  options.timeout_s = 2;
  options.standbys.resize(1);
  options.standbys.front().host = "nobody.example";
  const auto arrivals = steady(40, 4 * kTick);
  const auto run =
      http_load(first.target, kModels, arrivals, options, [](const LoadTarget& target) -> Addresses {
        if (target.host == "nobody.example") return invalid_input("not known");
        return find_addresses(target);
      });
  const auto result = run->run();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->statuses.at(200), 39U);
  EXPECT_GT(result->resent, 0U);
  const std::lock_guard lock(mutex);
  kept.reset();
}

TEST(LoadAddresses, RequestsGoOnDuringASearch) {
  constexpr int kRequests = 20;
  std::atomic<int> searches{0}, answered{0};
  std::promise<void> all_answered;
  const auto over = all_answered.get_future().share();
  const Stub standby([&](const HttpHead&, const HttpBody& body, const HttpReply& reply) {
    reply.send(answer_to(body));
    if (++answered == kRequests) all_answered.set_value();
  });
  LoadTarget nobody;
  nobody.port = 1;
  LoadOptions options;
  options.timeout_s = 20;
  options.standbys = {standby.target};
  const auto arrivals = steady(kRequests, 50 * kTick);
  const auto run = http_load(nobody, kModels, arrivals, options, [&](const LoadTarget& target) -> Addresses {
    // Another search than the first one lasts as long as the load.
    if (target.port == 1 && searches++ > 0) over.wait_for(std::chrono::seconds(60));
    return find_addresses(target);
  });
  const auto result = run->run();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->statuses.at(200), static_cast<size_t>(kRequests));
  EXPECT_EQ(searches, 2);
}

// The name of a host that has vanished leads to another one.
TEST(LoadAddresses, SilenceMakesALoadSearchAgain) {
  std::mutex mutex;
  std::vector<HttpReply> kept;
  const Stub vanished([&](const HttpHead&, const HttpBody&, const HttpReply& reply) {
    const std::lock_guard lock(mutex);
    kept.push_back(reply);
  });
  const Stub present(
      [](const HttpHead&, const HttpBody& body, const HttpReply& reply) { reply.send(answer_to(body)); });
  std::atomic<int> searches{0};
  LoadOptions options;
  options.timeout_s = .2;
  const auto arrivals = steady(60, 50 * kTick);
  const auto run =
      http_load(vanished.target, kModels, arrivals, options, [&](const LoadTarget&) -> Addresses {
        return std::vector{loopback((searches++ == 0 ? vanished : present).target.port)};
      });
  const auto result = run->run();
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_TRUE(result->statuses.contains(200));
  EXPECT_TRUE(result->statuses.contains(0));
  const std::lock_guard lock(mutex);
  kept.clear();
}

TEST(LoadAddresses, TheFirstThatTakesAConnectionIsTried) {
  const Stub stub(
      [](const HttpHead&, const HttpBody& body, const HttpReply& reply) { reply.send(answer_to(body)); });
  const std::vector<SocketAddress> all = {loopback(1), loopback(stub.target.port), loopback(2)};
  EXPECT_EQ(first_that_connects(all, 2), 1U);
  EXPECT_EQ(first_that_connects(std::span(all).first(1), 2), 0U);
  ServerAddresses addresses([&all]() -> Addresses { return all; });
  addresses.wait();
  ASSERT_EQ(port_of(*addresses.current()), stub.target.port);
  addresses.refused(all[0]);  // is not the current one
  EXPECT_EQ(port_of(*addresses.current()), stub.target.port);
  addresses.refused(all[1]);
  EXPECT_EQ(port_of(*addresses.current()), 2);
}

TEST(LoadAddresses, AnUnknownNameIsAnError) {
  ServerAddresses addresses([]() -> Addresses { return invalid_input("not known"); });
  addresses.wait();
  EXPECT_THAT(addresses.current().error().message(), testing::HasSubstr("not known"));
  EXPECT_EQ(addresses.size(), 0U);
}

}  // namespace
}  // namespace heddle
